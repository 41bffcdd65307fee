"""A whole researcher: one JSON document in, one out. It draws another number of neighbours, near the base's."""

import json
import random
import re
import sys

request = json.load(sys.stdin)
draw = random.Random(request["seed"] + request["round"])  # the same question gives the same answer
base = request["view"]["base"]
program = base["files"]["fit.py"]
found = re.search(r"NEIGHBOURS = (\d+)", program)
now = int(found.group(1)) if found else 40
new = max(1, round(now * draw.uniform(0.3, 2)))
answer = {
    "plan": {
        "hypothesis": f"{new} neighbours instead of {now} weigh noise against detail better",
        "expected_change": 0.01,  # gain of the first metric; positive is better
    },
    "files": {"fit.py": re.sub(r"NEIGHBOURS = \d+", f"NEIGHBOURS = {new}", program)},
}
json.dump(answer, sys.stdout)
