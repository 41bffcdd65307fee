"""Writes OUT/public, OUT/inloop and OUT/heldout: a noisy sine, its questions, and the answers of each split."""

import json
import math
import pathlib
import random
import sys

out = pathlib.Path(sys.argv[1])
draw = random.Random(20)
curve = lambda x: math.sin(3 * x) + 0.5 * x
questions, answers = {}, {"inloop": {}, "heldout": {}}
for number in range(400):
    x = draw.uniform(-2, 2)
    questions[f"q{number}"] = x
    answers["inloop" if number % 2 == 0 else "heldout"][f"q{number}"] = curve(x)
xs = [draw.uniform(-2, 2) for _ in range(120)]
train = [[x, curve(x) + draw.gauss(0, 0.4)] for x in xs]

(out / "public").mkdir(parents=True)
(out / "public" / "train.json").write_text(json.dumps(train))
(out / "public" / "questions.json").write_text(json.dumps(questions))
for split, values in answers.items():
    (out / split).mkdir()
    (out / split / "answers.json").write_text(json.dumps(values))
