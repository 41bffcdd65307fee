"""Scores a submission: multi-class log loss, and accuracy to break ties.

    python evaluate.py              on the in-loop labels
    python evaluate.py --heldout    on the held-out labels

A submission must give every test id exactly once, the in-loop and the held-out ones alike: so one training gives both
scores. What is wrong with a submission becomes the reason of an invalid measurement; only a fault of this program or of
its labels ends in a traceback. A submission is text to this program and nothing else: it is never loaded or run.
"""

import csv
import io
import json
import math
import os
import re
import stat
import sys
from pathlib import Path

CLASSES = ["alive", "circulatory", "other"]
HEADER = ["id", *CLASSES]
MAX_BYTES = 4 * 1024 * 1024
MAX_CELL = 64
# A plain decimal number. float() would also take "nan", "inf", "1_0" and digits of other scripts.
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
# Room for rounded and single-precision numbers; rows are divided by their sum before they are scored.
SUM_TOLERANCE = 1e-3
# A probability of zero costs this much and not infinity.
SMALLEST = 1e-15


class Invalid(Exception):
    """The submission cannot be scored; the message says why."""


def quoted(text):
    """A piece of a submission, fit to stand in a reason: printable ASCII and short."""
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def read_text(path):
    """The submission's text, if it is a regular UTF-8 file of a sane size."""
    try:
        # A link is not followed, a FIFO is not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Invalid(f"submission.csv cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid("submission.csv is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Invalid(f"submission.csv is larger than {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"submission.csv is not UTF-8 text: byte {error.start} cannot be read") from error
    if "\0" in text:
        raise Invalid("submission.csv holds a NUL byte")
    return text


def read_number(cell, where):
    """A probability: a plain decimal number from 0 to 1."""
    if len(cell) > MAX_CELL or not NUMBER.fullmatch(cell):
        raise Invalid(f"{where} is {quoted(cell)}, not a plain decimal number")
    value = float(cell)
    if not 0 <= value <= 1:
        raise Invalid(f"{where} is {quoted(cell)}, not between 0 and 1")
    return value


def read_submission(path):
    """Probabilities by id, in the order of CLASSES, each row summing to 1."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    predictions = {}
    try:
        header = next(rows, None)
        if header != HEADER:
            raise Invalid(f"the header is {quoted(','.join(header or []))}, expected {','.join(HEADER)}")
        for row in rows:
            where = f"line {rows.line_num}"
            if len(row) != len(HEADER):
                raise Invalid(f"{where} has {len(row)} cells, expected {len(HEADER)}")
            if row[0] in predictions:
                raise Invalid(f"{where} gives the id {quoted(row[0])} a second time")
            predictions[row[0]] = read_probabilities(row[1:], where)
    except csv.Error as error:
        raise Invalid(f"submission.csv is not CSV: line {rows.line_num}: {quoted(str(error))}") from error
    return predictions


def read_probabilities(cells, where):
    values = [read_number(cell, f"{where}, {name}") for name, cell in zip(CLASSES, cells)]
    total = math.fsum(values)
    if abs(total - 1) > SUM_TOLERANCE:
        raise Invalid(f"{where}: the probabilities sum to {total:.6g}, expected 1")
    return [value / total for value in values]


def check_ids(found, expected):
    """Exactly the test ids, no other."""
    missing = [identifier for identifier in expected if identifier not in found]
    if missing:
        raise Invalid(f"{len(missing)} of {len(expected)} test ids are missing, first {quoted(missing[0])}")
    if len(found) > len(expected):
        known = set(expected)
        unknown = [identifier for identifier in found if identifier not in known]
        raise Invalid(f"{len(unknown)} ids are not test ids, first {quoted(unknown[0])}")


def read_column(path, *columns):
    """Rows of one of our own files."""
    with path.open(encoding="utf-8", newline="") as file:
        return [[row[column] for column in columns] for row in csv.DictReader(file)]


def score(predictions, labels):
    """The measurement over the labelled ids. A tie for the first place counts as wrong, so a constant gains nothing."""
    losses, hits = [], 0
    for identifier, label in labels:
        probabilities = predictions[identifier]
        own = probabilities[CLASSES.index(label)]
        losses.append(-math.log(max(own, SMALLEST)))
        hits += all(own > other for name, other in zip(CLASSES, probabilities) if name != label)
    return {
        "metrics": {"log_loss": math.fsum(losses) / len(losses), "accuracy": hits / len(losses)},
        "records": {"metric": "log_loss", "ids": [identifier for identifier, _ in labels], "values": losses},
    }


def measure(heldout):
    labels_folder = Path(os.environ["TRIALIST_LABELS"])
    inloop_folder = Path(os.environ["TRIALIST_INLOOP"]) if heldout else labels_folder
    expected = [row[0] for row in read_column(inloop_folder / "test_ids.csv", "id")]
    labels = read_column(labels_folder / "labels.csv", "id", "outcome")
    try:
        predictions = read_submission(Path(os.environ["TRIALIST_ARTIFACTS"]) / "submission.csv")
        check_ids(predictions, expected)
    except Invalid as error:
        return {"invalid": str(error)}
    return score(predictions, labels)


def main():
    measurement = measure(heldout="--heldout" in sys.argv[1:])
    Path(os.environ["TRIALIST_MEASUREMENT"]).write_text(json.dumps(measurement, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
