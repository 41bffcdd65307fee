import json
import os

x = 1.0
y = 1.0

with open(os.path.join(os.environ["TRIALIST_OUTPUT"], "point.json"), "w") as file:
    json.dump({"x": x, "y": y}, file)
