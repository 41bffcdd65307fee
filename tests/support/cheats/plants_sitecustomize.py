# Plants a start-up file of the interpreter, which would grade in the evaluator's place.
plant(["sitecustomize.py"])
answer({})
