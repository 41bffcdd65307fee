"""Changes one of the numbers at random. In this environment no researcher can do better.

    python3 -S -E playbook/researcher.py < question.json > answer.json
"""

import json
import random
import re
import sys

NUMBER = re.compile(r"^([A-Z]+) = ([0-9.]+)$", re.MULTILINE)


def main():
    question = json.load(sys.stdin)
    generator = random.Random(f"{question['seed']}/{question.get('round', 1)}")
    program = question["view"]["base"]["files"]["solution.py"]
    name, old = generator.choice(NUMBER.findall(program))
    new = f"{generator.random():.6f}"
    changed = re.sub(rf"^{name} = .*$", f"{name} = {new}", program, flags=re.MULTILINE)
    plan = {"hypothesis": f"{name} at {new} instead of {old} may lower the loss.", "expected_change": None}
    json.dump({"plan": plan, "files": {"solution.py": changed}}, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
