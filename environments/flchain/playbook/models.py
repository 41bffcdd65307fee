"""Model families: their settings with ranges, what they need, and how each is written down as a `predict_…` function."""

#: Rounds after which boosting stops when the held-aside rows no longer gain.
PATIENCE = 30

SPACES = {
    "logistic": {"C": ("log", 0.01, 10.0)},
    "splines": {"C": ("log", 0.01, 10.0), "n_knots": ("log_int", 3, 9)},
    "random_forest": {
        "n_estimators": ("log_int", 150, 400),
        "min_samples_leaf": ("log_int", 2, 30),
        "max_features": ("choice", "sqrt", 0.3, 0.5, 0.8),
    },
    "extra_trees": {
        "n_estimators": ("log_int", 150, 400),
        "min_samples_leaf": ("log_int", 2, 30),
        "max_features": ("choice", "sqrt", 0.3, 0.5, 0.8),
    },
    "hist_gradient": {
        "learning_rate": ("log", 0.02, 0.25),
        "max_iter": ("log_int", 50, 250),
        "max_leaf_nodes": ("log_int", 4, 31),
        "min_samples_leaf": ("log_int", 5, 80),
        "l2_regularization": ("log", 0.01, 20.0),
    },
    "lightgbm": {
        "learning_rate": ("log", 0.02, 0.25),
        "n_estimators": ("log_int", 60, 400),
        "num_leaves": ("log_int", 4, 48),
        "min_child_samples": ("log_int", 5, 80),
        "colsample_bytree": ("uniform", 0.4, 1.0),
        "reg_lambda": ("log", 0.01, 20.0),
    },
    "xgboost": {
        "learning_rate": ("log", 0.02, 0.3),
        "n_estimators": ("log_int", 60, 400),
        "max_depth": ("choice", 2, 3, 4, 5, 6, 7),
        "min_child_weight": ("log", 0.5, 20.0),
        "subsample": ("uniform", 0.5, 1.0),
        "colsample_bytree": ("uniform", 0.4, 1.0),
        "reg_lambda": ("log", 0.1, 20.0),
    },
    "mlp": {
        "hidden_layer_sizes": ("choice", (16,), (32,), (64,), (32, 16)),
        "alpha": ("log", 0.0001, 1.0),
        "learning_rate_init": ("log", 0.0005, 0.01),
        "max_iter": ("log_int", 20, 80),
    },
    "neighbours": {"n_neighbors": ("log_int", 10, 120), "weights": ("choice", "uniform", "distance")},
}

#: Where a model's name is written out in a sentence.
TITLES = {
    "logistic": "logistic regression",
    "splines": "logistic regression on splines",
    "random_forest": "a random forest",
    "extra_trees": "extra trees",
    "hist_gradient": "histogram gradient boosting",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "mlp": "a small neural network",
    "neighbours": "nearest neighbours",
}

BOOSTERS = ("lightgbm", "xgboost", "hist_gradient")
FORESTS = ("random_forest", "extra_trees")
#: Families for which another seed changes nothing.
SEEDLESS = ("logistic", "splines", "neighbours", "hist_gradient")
#: Families that come with their own module, for repairs when it is not installed.
MODULES = {"lightgbm": "lightgbm", "xgboost": "xgboost"}

IMPORTS = {
    "logistic": ["from sklearn.linear_model import LogisticRegression", "from sklearn.pipeline import make_pipeline", "from sklearn.preprocessing import StandardScaler"],
    "splines": ["from sklearn.linear_model import LogisticRegression", "from sklearn.pipeline import make_pipeline", "from sklearn.preprocessing import SplineTransformer, StandardScaler"],
    "random_forest": ["from sklearn.ensemble import RandomForestClassifier"],
    "extra_trees": ["from sklearn.ensemble import ExtraTreesClassifier"],
    "hist_gradient": ["from sklearn.ensemble import HistGradientBoostingClassifier"],
    "lightgbm": ["import lightgbm as lgb"],
    "xgboost": ["import xgboost as xgb"],
    "mlp": ["from sklearn.neural_network import MLPClassifier", "from sklearn.pipeline import make_pipeline", "from sklearn.preprocessing import StandardScaler"],
    "neighbours": ["from sklearn.neighbors import KNeighborsClassifier", "from sklearn.pipeline import make_pipeline", "from sklearn.preprocessing import StandardScaler"],
}

#: Tasks of forms.py that each family's function takes part in; with early stopping, and when calibrated, some more.
TASKS = {
    "logistic": ["logistic"],
    "splines": ["logistic"],
    "random_forest": ["forest_columns"],
    "extra_trees": ["forest_columns"],
    "hist_gradient": ["hist_rounds"],
    "lightgbm": ["lightgbm_silence"],
    "xgboost": ["xgboost_labels"],
    "mlp": [],
    "neighbours": [],
}
STOPPING_TASKS = {"lightgbm": "lightgbm_stopping", "xgboost": "xgboost_stopping"}


def tasks_of(model):
    """The tasks of forms.py that a model of a recipe needs."""
    tasks = list(TASKS[model["kind"]])
    if model.get("early_stopping") and model["kind"] in STOPPING_TASKS:
        tasks.append(STOPPING_TASKS[model["kind"]])
    if model.get("calibrated"):
        tasks.append("calibrated")
    return tasks


def fit_seconds(model):
    """A rough guess of one fit on all training rows, on one slow core: so that a program stays within its time."""
    kind, settings = model["kind"], model["settings"]
    if kind == "lightgbm":
        return 0.1 + settings["n_estimators"] * settings["num_leaves"] * 1.3e-4
    if kind == "xgboost":
        return 0.1 + settings["n_estimators"] * (0.001 + 2 ** settings["max_depth"] * 3e-5)
    if kind == "hist_gradient":
        return 0.1 + settings["max_iter"] * (0.0015 + settings["max_leaf_nodes"] * 2.5e-4)
    if kind in FORESTS:
        share = {"sqrt": 0.3}.get(settings["max_features"], settings["max_features"])
        calibrated = 3 if model.get("calibrated") else 1
        return calibrated * settings["n_estimators"] * (0.002 + (0.012 if kind == "random_forest" else 0.004) * share)
    if kind == "mlp":
        return settings["max_iter"] * 0.015
    return {"logistic": 0.05, "splines": 0.15}.get(kind, 0.4)


FIT_FIXED = """\
    model.fit(x, {labels}{fit_arguments})
    return model.predict_proba(x_new)
"""

FIT_STOPPED = """\
    x_fit, x_stop, y_fit, y_stop = train_test_split(x, {labels}, test_size=0.15, stratify=y, random_state=seed)
    model.fit(x_fit, y_fit, eval_set=[(x_stop, y_stop)]{fit_arguments})
    return model.predict_proba(x_new)
"""


def boosted(constructor, arguments, fit_arguments, labels, stopped):
    """The body of a boosting library's function."""
    body = f"    model = {constructor}({', '.join(arguments)})\n"
    fit = "".join(f", {argument}" for argument in fit_arguments)
    return body + (FIT_STOPPED if stopped else FIT_FIXED).format(labels=labels, fit_arguments=fit)


def lightgbm_body(model, forms):
    arguments, fit_arguments = ["**settings", "random_state=seed", "n_jobs=THREADS"], []
    if forms["lightgbm_silence"] == "constructor":
        arguments.append("verbosity=-1")
    else:
        fit_arguments.append("verbose=False")
    if model.get("early_stopping"):
        form = forms["lightgbm_stopping"]
        if form == "callback":
            fit_arguments.append(f"callbacks=[lgb.early_stopping({PATIENCE}, verbose=False)]")
        elif form == "fit_argument":
            fit_arguments.append(f"early_stopping_rounds={PATIENCE}")
        else:
            arguments.append(f"early_stopping_round={PATIENCE}")
    return boosted("lgb.LGBMClassifier", arguments, fit_arguments, "y", model.get("early_stopping"))


def xgboost_body(model, forms):
    arguments, fit_arguments = ["**settings", "random_state=seed", "n_jobs=THREADS", 'tree_method="hist"'], []
    if model.get("early_stopping"):
        target = arguments if forms["xgboost_stopping"] == "constructor" else fit_arguments
        target.append(f"early_stopping_rounds={PATIENCE}")
        fit_arguments.append("verbose=False")
    labels = "y" if forms["xgboost_labels"] == "codes" else "np.array(CLASSES)[y]"
    return boosted("xgb.XGBClassifier", arguments, fit_arguments, labels, model.get("early_stopping"))


def hist_gradient_body(model, forms):
    arguments = ["**settings", "random_state=seed"]
    body = ""
    if forms["hist_rounds"] == "n_estimators":
        body = '    settings = {("n_estimators" if name == "max_iter" else name): value for name, value in settings.items()}\n'
    stopping = f"True, n_iter_no_change={PATIENCE // 2}" if model.get("early_stopping") else "False"
    arguments.append(f"early_stopping={stopping}")
    body += f"    model = HistGradientBoostingClassifier({', '.join(arguments)})\n"
    return body + FIT_FIXED.format(labels="y", fit_arguments="")


def forest_body(model, forms):
    name = "RandomForestClassifier" if model["kind"] == "random_forest" else "ExtraTreesClassifier"
    body = ""
    if forms["forest_columns"] == "auto":
        body = '    settings = {**settings, "max_features": "auto"}\n'
    body += f"    model = {name}(**settings, random_state=seed, n_jobs=THREADS)\n"
    if model.get("calibrated"):
        body += f'    model = CalibratedClassifierCV({forms["calibrated"]}=model, method="sigmoid", cv=3)\n'
    return body + FIT_FIXED.format(labels="y", fit_arguments="")


def linear_body(model, forms):
    extra = {"plain": "", "multinomial": ', multi_class="multinomial"', "no_penalty": ', penalty="none"'}[forms["logistic"]]
    if model["kind"] == "logistic":
        body = f"    model = make_pipeline(StandardScaler(), LogisticRegression(**settings, max_iter=500{extra}))\n"
    else:
        body = (
            '    knots = SplineTransformer(n_knots=settings["n_knots"], knots="quantile")\n'
            f'    model = make_pipeline(StandardScaler(), knots, LogisticRegression(C=settings["C"], max_iter=500{extra}))\n'
        )
    return body + FIT_FIXED.format(labels="y", fit_arguments="")


def plain_body(constructor):
    """The body of a family without forms of its own, behind a scaler."""

    def body(model, forms):
        stopping = ", early_stopping=True" if model.get("early_stopping") else ""
        return f"    model = make_pipeline(StandardScaler(), {constructor}{stopping}))\n" + FIT_FIXED.format(labels="y", fit_arguments="")

    return body


BODIES = {
    "logistic": linear_body,
    "splines": linear_body,
    "random_forest": forest_body,
    "extra_trees": forest_body,
    "hist_gradient": hist_gradient_body,
    "lightgbm": lightgbm_body,
    "xgboost": xgboost_body,
    "mlp": plain_body("MLPClassifier(**settings, random_state=seed"),
    "neighbours": plain_body("KNeighborsClassifier(**settings, n_jobs=THREADS"),
}


def function_source(model, forms):
    """The model's `predict_…` function: fits on (x, y) and gives the probabilities of x_new."""
    kind = model["kind"]
    return f"def predict_{kind}(x, y, x_new, seed, settings):\n{BODIES[kind](model, forms)}"


def imports_of(model):
    """Import lines of the model's function."""
    lines = list(IMPORTS[model["kind"]])
    if model.get("early_stopping") and model["kind"] in STOPPING_TASKS:
        lines.append("from sklearn.model_selection import train_test_split")
    if model.get("calibrated"):
        lines.append("from sklearn.calibration import CalibratedClassifierCV")
    return lines
