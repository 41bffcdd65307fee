"""Exports scikit-learn's digits as arrays that a candidate may see and labels that it may not.

    python prepare.py OUT_DIR

Writes `OUT_DIR/public`, `OUT_DIR/inloop` and `OUT_DIR/heldout`. Same packages, same bytes. It runs in a runtime of its
own: a candidate that could import scikit-learn could import the answers.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SEED = 1_797
INLOOP, HELDOUT = 400, 400


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def stratified_order(labels, generator):
    """Row numbers, shuffled so that every stretch of the order holds each class by its share."""
    rank = np.empty(len(labels))
    for digit in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == digit))
        rank[rows] = (np.arange(len(rows)) + generator.random()) / len(rows)
    return np.argsort(rank, kind="stable")


def main(out):
    generator = np.random.default_rng(SEED)
    images, labels = load_digits(return_X_y=True)
    images, labels = images.astype(np.uint8), labels.astype(np.uint8)
    order = stratified_order(labels, generator)
    train = generator.permutation(order[INLOOP + HELDOUT :])
    # In-loop and held-out images are one shuffled array: nothing tells a candidate which is which.
    test = generator.permutation(order[: INLOOP + HELDOUT])
    inloop = set(order[:INLOOP].tolist())

    public = out / "public"
    public.mkdir(parents=True, exist_ok=True)
    np.save(public / "train_images.npy", images[train])
    np.save(public / "train_labels.npy", labels[train])
    np.save(public / "test_images.npy", images[test])
    rows = [(number, int(labels[row]), int(row) in inloop) for number, row in enumerate(test)]
    write_csv(out / "inloop" / "test_ids.csv", ["id"], [[number] for number, _, _ in rows])
    write_csv(out / "inloop" / "labels.csv", ["id", "digit"], [[number, digit] for number, digit, seen in rows if seen])
    write_csv(out / "heldout" / "labels.csv", ["id", "digit"], [[number, digit] for number, digit, seen in rows if not seen])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
