"""Plain logistic regression on the columns as they are."""

import os
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])
CLASSES = ["alive", "circulatory", "other"]
NUMERIC = ["age", "sample_yr", "kappa", "lambda", "flc_grp", "creatinine", "mgus", "futime"]

train = pd.read_csv(DATA / "train.csv")
test = pd.read_csv(DATA / "test.csv")

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), NUMERIC),
    (OneHotEncoder(drop="if_binary"), ["sex"]),
)
model = make_pipeline(columns, LogisticRegression(max_iter=1000))
model.fit(train, train["outcome"])

probabilities = pd.DataFrame(model.predict_proba(test), columns=model.classes_)[CLASSES]
probabilities.insert(0, "id", test["id"])
probabilities.to_csv(OUTPUT / "submission.csv", index=False)
