"""LightGBM at its default settings, on the columns as they are."""

import os
from pathlib import Path

import lightgbm as lgb
import pandas as pd

DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])
CLASSES = ["alive", "circulatory", "other"]
FEATURES = ["age", "sex", "sample_yr", "kappa", "lambda", "flc_grp", "creatinine", "mgus", "futime"]

train = pd.read_csv(DATA / "train.csv")
test = pd.read_csv(DATA / "test.csv")
for frame in (train, test):
    frame["sex"] = pd.Categorical(frame["sex"], categories=["F", "M"])

threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
model = lgb.LGBMClassifier(n_jobs=threads, verbosity=-1)
model.fit(train[FEATURES], train["outcome"])

probabilities = pd.DataFrame(model.predict_proba(test[FEATURES]), columns=model.classes_)[CLASSES]
probabilities.insert(0, "id", test["id"])
probabilities.to_csv(OUTPUT / "submission.csv", index=False)
