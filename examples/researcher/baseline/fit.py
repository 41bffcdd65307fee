"""Answers every question with the mean of the nearest training points."""

import json
import os
import pathlib

NEIGHBOURS = 40

data = pathlib.Path(os.environ["TRIALIST_DATA"])
train = json.loads((data / "train.json").read_text())
questions = json.loads((data / "questions.json").read_text())


def answer(x: float) -> float:
    nearest = sorted(train, key=lambda point: abs(point[0] - x))[:NEIGHBOURS]
    return sum(y for _, y in nearest) / len(nearest)


output = pathlib.Path(os.environ["TRIALIST_OUTPUT"], "answers.json")
output.write_text(json.dumps({name: answer(x) for name, x in questions.items()}))
