"""Tries one change of train.py after another, from a list that somebody with an evening to spare wrote down."""

import json
import random
import sys

GRADES = '''    for grade, order in {
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        "color": list("JIHGFED"),
    }.items():
        table[grade] = frame[grade].map(order.index)
'''
COPY = "    table = frame[COLUMNS].copy()\n"

COLUMNS = 'COLUMNS = ["carat", "depth", "table"]'

# Why, what is replaced in the script, by what; an idea whose last text is in the script already is not tried again.
IDEAS = [
    ("Clarity and colour are grades: give them to the forest in their order", COPY, COPY + GRADES, "order.index"),
    ("Size in millimetres says more than weight", COPY, COPY + '    table["volume"] = frame["x"] * frame["y"] * frame["z"]\n', '"volume"'),
    ("The cut is a grade too", COPY, COPY + '    table["cut"] = frame["cut"].astype("category").cat.codes\n', '"cut"'),
    ("The certificate may help", COPY, COPY + '    table["certificate"] = frame["certificate"]\n', '"certificate"'),
    ("Deeper trees", "DEPTH = 6", "DEPTH = 14", "DEPTH = 14"),
    ("More trees", "TREES = 30", "TREES = 60", "TREES = 60"),
    ("Fewer trees are faster and as good", "TREES = 30", "TREES = 15", "TREES = 15"),
    ("The table of a diamond is noise", COLUMNS, 'COLUMNS = ["carat", "depth"]', '["carat", "depth"]'),
    ("Leaves of at least 20 diamonds", "max_depth=DEPTH,", "max_depth=DEPTH, min_samples_leaf=20,", "min_samples_leaf"),
    ("An error in per cent wants the logarithm of the price", "    return price\n", "    return numpy.log(price)\n", "numpy.log"),
]


def changed(script, old, new, mark):
    if mark in script:
        return script
    script = script.replace(old, new)
    # A logarithm that is learnt has to be taken back.
    return script.replace("    return prediction\n", "    return numpy.exp(prediction)\n") if mark == "numpy.log" else script


request = json.load(sys.stdin)
script = request["view"]["base"]["files"]["train.py"]
if request["role"] == "debug":  # what failed goes out before something else comes in
    script = script.replace('    table["certificate"] = frame["certificate"]\n', "")
usable = [idea for idea in IDEAS if changed(script, *idea[1:]) != script]
draw = random.Random(request["seed"] + request["round"])
chosen = draw.sample(usable, min(request["round"], len(usable)))  # what was measured before is refused: then two at once, three
for _, *change in chosen:
    script = changed(script, *change)
hypothesis = ". ".join(idea[0] for idea in chosen)
json.dump({"plan": {"hypothesis": hypothesis}, "files": {"train.py": script}}, sys.stdout)
