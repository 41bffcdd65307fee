"""Scores answers.json against the labels of its split, with one squared error per question."""

import json
import math
import os
import pathlib

given = pathlib.Path(os.environ["TRIALIST_ARTIFACTS"], "answers.json")
labels = json.loads(pathlib.Path(os.environ["TRIALIST_LABELS"], "answers.json").read_text())
measurement = pathlib.Path(os.environ["TRIALIST_MEASUREMENT"])


def score() -> dict:
    try:
        answers = json.loads(given.read_text())
    except (ValueError, RecursionError) as error:
        return {"invalid": f"answers.json is not JSON: {error}"}
    if not isinstance(answers, dict):
        return {"invalid": "answers.json is not an object"}
    errors = []
    for name, truth in labels.items():
        answer = answers.get(name)
        if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not math.isfinite(answer):
            return {"invalid": f"the answer to {name} is not a finite number"}
        errors.append((answer - truth) ** 2)
    return {
        "metrics": {"squared_error": sum(errors) / len(errors)},
        "records": {"metric": "squared_error", "ids": list(labels), "values": errors},
    }


measurement.write_text(json.dumps(score()))
