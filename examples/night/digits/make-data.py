"""Writes data/digits.npz: 1,797 handwritten digits of 8 by 8 pixels, from the package scikit-learn."""

import pathlib

import numpy
from sklearn.datasets import load_digits

pathlib.Path("data").mkdir(exist_ok=True)
digits = load_digits()
numpy.savez("data/digits.npz", pixels=digits.data.astype("float32") / 16, digit=digits.target)
print(f"data/digits.npz: {len(digits.target)} pictures")
