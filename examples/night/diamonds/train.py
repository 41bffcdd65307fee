"""Predicts what a diamond costs; prints by how many per cent it is wrong on diamonds that it has not seen."""

import numpy
from sklearn.ensemble import RandomForestRegressor

from dataset import SEED, mean_percentage_error, split

COLUMNS = ["carat", "depth", "table"]
TREES = 30
DEPTH = 6


def features(frame):
    table = frame[COLUMNS].copy()
    return table.to_numpy(dtype=float)


def target(price):
    return price


def price(prediction):
    return prediction


train, test = split()
model = RandomForestRegressor(n_estimators=TREES, max_depth=DEPTH, random_state=SEED)
model.fit(features(train), target(train["price"].to_numpy(dtype=float)))
error = mean_percentage_error(test["price"].to_numpy(dtype=float), price(model.predict(features(test))))
print(f"percentage_error: {error:.4f}")
