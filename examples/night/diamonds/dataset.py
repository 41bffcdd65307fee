"""The diamonds, and which of them a model may see."""

import os

import pandas

SEED = int(os.environ.get("TRIALIST_SEED", "0"))


def split(rows=6000, test=3000):
    frame = pandas.read_csv("data/diamonds.csv").sample(n=rows + test, random_state=SEED)
    return frame.iloc[:rows], frame.iloc[rows:]


def mean_percentage_error(truth, prediction):
    return 100 * float((abs(prediction - truth) / truth).mean())
