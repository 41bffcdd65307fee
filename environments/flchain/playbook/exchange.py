"""The exchange with whoever runs a researcher: one JSON document in, one out."""

import json
import random
import sys

from recipe import read_recipe

PROGRAM = "solution.py"
ROLES = ("draft", "debug", "improve")


def answer_with(researcher):
    """Reads the question, lets `researcher(question, generator)` answer, writes the answer."""
    question = json.load(sys.stdin)
    if question.get("protocol") != "trialist/role@1" or question.get("role") not in ROLES:
        sys.exit(f"this researcher speaks trialist/role@1 in the roles {', '.join(ROLES)}")
    # A refused answer is asked for again in a later round: the same seed has to lead elsewhere then.
    generator = random.Random(f"{question['seed']}/{question.get('round', 1)}")
    program, hypothesis, change = researcher(question, generator)
    answer = {"plan": {"hypothesis": hypothesis, "expected_change": change}, "files": {PROGRAM: program}}
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")


def base_program(question):
    """The text of the program to start from."""
    return question["view"]["base"].get("files", {}).get(PROGRAM, "")


def base_recipe(question):
    """Its recipe, if it carries one that we can read."""
    return read_recipe(base_program(question))
