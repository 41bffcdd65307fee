"""Answers every question with the weighted mean of the nearest training points."""

import json
import os
import pathlib

NEIGHBOURS = 40
SHARPNESS = 0.0  # how much more the nearer ones count

data = pathlib.Path(os.environ["TRIALIST_DATA"])
train = json.loads((data / "train.json").read_text())
questions = json.loads((data / "questions.json").read_text())


def answer(x: float) -> float:
    nearest = sorted(train, key=lambda point: abs(point[0] - x))[:NEIGHBOURS]
    weights = [1 / (0.01 + abs(each - x)) ** SHARPNESS for each, _ in nearest]
    return sum(weight * y for weight, (_, y) in zip(weights, nearest)) / sum(weights)


output = pathlib.Path(os.environ["TRIALIST_OUTPUT"], "answers.json")
output.write_text(json.dumps({name: answer(x) for name, x in questions.items()}))
