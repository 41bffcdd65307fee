"""Tries another value of one setting of train.sh."""

import json
import random
import re
import sys

request = json.load(sys.stdin)
draw = random.Random(request["seed"] + request["round"])
script = request["view"]["base"]["files"]["train.sh"]
setting, value = draw.choice(["width", "depth"]), draw.randint(1, 10)
script = re.sub(rf"{setting}=\d+", f"{setting}={value}", script)
json.dump({"plan": {"hypothesis": f"{setting} {value} scores more"}, "files": {"train.sh": script}}, sys.stdout)
