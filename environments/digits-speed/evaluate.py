"""Scores the predictions of all repeats: the mean accuracy. The engine times the training; this program does not.

    python evaluate.py --repeats 5              on the in-loop labels
    python evaluate.py --repeats 5 --heldout    on the held-out labels

Every repeat must give every test id exactly once, the in-loop and the held-out ones alike. What is wrong with a file of
predictions becomes the reason of an invalid measurement; only a fault of this program or of its labels ends in a
traceback. Predictions are text to this program and nothing else: they are never loaded or run.
"""

import argparse
import json
import os
import stat
from pathlib import Path

HEADER = "id,digit"
MAX_BYTES = 64 * 1024
DIGITS = {str(digit): digit for digit in range(10)}


class Invalid(Exception):
    """The predictions cannot be scored; the message says why."""


def quoted(text):
    """A piece of a file, fit to stand in a reason: printable ASCII and short."""
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def read_lines(path, name):
    """The lines of a regular ASCII file of a sane size, without their ends."""
    try:
        # A link is not followed, a FIFO is not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Invalid(f"{name} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid(f"{name} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Invalid(f"{name} is larger than {MAX_BYTES} bytes")
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise Invalid(f"{name} is not ASCII text: byte {error.start} cannot be read") from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def read_predictions(path, name, expected):
    """The predicted digit of every expected id."""
    header, *lines = read_lines(path, name)
    if header != HEADER:
        raise Invalid(f"{name}: the header is {quoted(header)}, expected {HEADER}")
    predictions = {}
    for number, line in enumerate(lines, start=2):
        identifier, comma, digit = line.partition(",")
        if not comma or digit not in DIGITS:
            raise Invalid(f"{name}, line {number} is {quoted(line)}, expected an id, a comma and a digit from 0 to 9")
        if identifier not in expected:
            raise Invalid(f"{name}, line {number}: {quoted(identifier)} is not a test id")
        if identifier in predictions:
            raise Invalid(f"{name}, line {number} gives the id {identifier} a second time")
        predictions[identifier] = DIGITS[digit]
    if len(predictions) < len(expected):
        raise Invalid(f"{name}: {len(expected) - len(predictions)} of {len(expected)} test ids are missing")
    return predictions


def own_rows(path):
    """Rows of one of our own files, without the header."""
    return [line.split(",") for line in path.read_text(encoding="ascii").splitlines()[1:]]


def score(runs, labels):
    """The measurement: per labelled id the share of repeats that were right."""
    values = [sum(run[identifier] == int(digit) for run in runs) / len(runs) for identifier, digit in labels]
    return {
        "metrics": {"accuracy": sum(values) / len(values)},
        "records": {"metric": "accuracy", "ids": [identifier for identifier, _ in labels], "values": values},
    }


def measure(repeats, heldout):
    labels_folder = Path(os.environ["TRIALIST_LABELS"])
    inloop_folder = Path(os.environ["TRIALIST_INLOOP"]) if heldout else labels_folder
    expected = {identifier for identifier, in own_rows(inloop_folder / "test_ids.csv")}
    labels = own_rows(labels_folder / "labels.csv")
    artifacts = Path(os.environ["TRIALIST_ARTIFACTS"])
    try:
        names = [f"repeat-{number}/predictions.csv" for number in range(1, repeats + 1)]
        runs = [read_predictions(artifacts / name, name, expected) for name in names]
    except Invalid as error:
        return {"invalid": str(error)}
    return score(runs, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--heldout", action="store_true")
    arguments = parser.parse_args()
    measurement = measure(arguments.repeats, arguments.heldout)
    Path(os.environ["TRIALIST_MEASUREMENT"]).write_text(json.dumps(measurement, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
