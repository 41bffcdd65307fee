"""The share of labels that were predicted."""

import csv
import json
import os
from pathlib import Path


def rows(path):
    with open(path, newline="") as file:
        return {row["id"]: row["label"] for row in csv.DictReader(file)}


labels = rows(Path(os.environ["TRIALIST_LABELS"], "labels.csv"))
predictions = rows(Path(os.environ["TRIALIST_ARTIFACTS"], "predictions.csv"))
if labels.keys() <= predictions.keys():
    hits = sum(predictions[identifier] == label for identifier, label in labels.items())
    measurement = {"metrics": {"accuracy": hits / len(labels)}}
else:
    measurement = {"invalid": "ids are missing"}
Path(os.environ["TRIALIST_MEASUREMENT"]).write_text(json.dumps(measurement) + "\n")
