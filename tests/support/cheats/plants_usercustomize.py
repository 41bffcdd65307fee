# The same with the start-up file of the user.
plant(["usercustomize.py"])
answer({})
