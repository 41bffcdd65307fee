"""From a recipe to a whole program. Only what the recipe asks for is written."""

from features import feature_name, feature_source, parse
from models import BOOSTERS, SPACES, function_source, imports_of
from recipe import FOLDS, literal, needed_tasks, needs_folds, needs_parts

HEAD = '''\
SEED = int(os.environ["TRIALIST_SEED"]) % 2**31
THREADS = int(float(os.environ.get("OMP_NUM_THREADS", "1")))
DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])
CLASSES = ["alive", "circulatory", "other"]

train = pd.read_csv(DATA / "train.csv")
test = pd.read_csv(DATA / "test.csv")
target = train["outcome"].map({name: code for code, name in enumerate(CLASSES)}).to_numpy()
'''

SEX = {
    "comparison": '    table["sex"] = (frame["sex"] == "M").astype(int)\n',
    "category_codes": '    table["sex"] = frame["sex"].astype("category").cat.codes\n',
    "object_dtype": (
        '    table["sex"] = frame["sex"]\n'
        "    for column in table.columns:\n"
        "        if table[column].dtype == object:\n"
        '            table[column] = table[column].astype("category").cat.codes\n'
    ),
}

ONE_HOT = {
    "dummies": '''\
both = pd.get_dummies(pd.concat([x, x_test]).astype({name: "category" for name in CATEGORIES}), columns=CATEGORIES)
x, x_test = both.iloc[: len(x)], both.iloc[len(x) :]
''',
    "encoder": '''\
encoder = OneHotEncoder({argument}=False, handle_unknown="ignore").fit(x[CATEGORIES])
names = list(encoder.get_feature_names_out())
x, x_test = (
    part.drop(columns=CATEGORIES).join(pd.DataFrame(encoder.transform(part[CATEGORIES]), columns=names, index=part.index))
    for part in (x, x_test)
)
''',
}

TARGET_ENCODING = '''\
encoder = TargetEncoder(random_state=SEED)
train_codes = encoder.fit_transform(x[CATEGORIES], target)
test_codes = encoder.transform(x_test[CATEGORIES])
names = [f"target_{number}" for number in range(train_codes.shape[1])]
x = x.join(pd.DataFrame(train_codes, columns=names, index=x.index))
x_test = x_test.join(pd.DataFrame(test_codes, columns=names, index=x_test.index))
'''

MISSING = {
    "leave": "",
    "median": "medians = x.median()\nx, x_test = x.fillna(medians), x_test.fillna(medians)\n",
    "median_flag": (
        "gaps = [name for name in x.columns if x[name].isna().any()]\n"
        "medians = x.median()\n"
        "for part in (x, x_test):\n"
        "    for name in gaps:\n"
        '        part[name + "_gap"] = part[name].isna().astype(int)\n'
        "x, x_test = x.fillna(medians), x_test.fillna(medians)\n"
    ),
    "neighbours": (
        "spread = StandardScaler().fit(x)\n"
        "imputer = KNNImputer(n_neighbors=10).fit(spread.transform(x))\n"
        "x, x_test = (pd.DataFrame(imputer.transform(spread.transform(part)), columns=x.columns, index=part.index) for part in (x, x_test))\n"
    ),
}

BINS = {
    "drop": '    return pd.qcut(values, count, labels=False, duplicates="drop")\n',
    "plain": "    return pd.qcut(values, count, labels=False)\n",
    "digitize": (
        "    edges = np.quantile(values.dropna(), np.linspace(0, 1, count + 1)[1:-1])\n"
        "    return pd.Series(np.digitize(values, edges), index=values.index).where(values.notna())\n"
    ),
}

TWO_STEP = '''\
def two_step(predict, x, y, x_new, seed, settings):
    """Alive or not, then which death among the dead."""
    alive = predict(x, (y == 0).astype(int), x_new, seed, settings)[:, 1]
    dead = y > 0
    other = predict(x[dead], y[dead] - 1, x_new, seed, settings)[:, 1]
    return np.column_stack([alive, (1 - alive) * (1 - other), (1 - alive) * other])
'''

AVERAGED = '''\
def averaged(predict, x, y, x_new, settings):
    """The mean over {count} seeds."""
    return np.mean([{call} for number in range({count})], axis=0)
'''

OUT_OF_FOLD = '''\
def out_of_fold(predict, settings):
    """Probabilities of every training row from a model that has not seen it, and of the test rows, averaged over folds."""
    rows, new = np.zeros((len(x), len(CLASSES))), []
    for fit, rest in FOLDS.split(x, target):
        both = {averaged}(predict, x.iloc[fit], target[fit], pd.concat([x.iloc[rest], x_test]), {seed}settings)
        rows[rest] = both[: len(rest)]
        new.append(both[len(rest) :])
    return rows, np.mean(new, axis=0)
'''

TUNED = '''\
def drawn(generator, kind, *bounds):
    """A value of a range."""
    if kind == "choice":
        return bounds[generator.integers(len(bounds))]
    low, high = bounds
    if kind == "uniform":
        return float(generator.uniform(low, high))
    value = float(np.exp(generator.uniform(np.log(low), np.log(high))))
    return round(value) if kind == "log_int" else value


def tuned(predict, settings, space, draws):
    """Random search from the given settings on; two of the folds are enough to tell settings apart."""
    generator = np.random.default_rng(SEED)
    tried = [settings]
    for _ in range(draws):
        tried.append({{**settings, **{{name: drawn(generator, *bounds) for name, bounds in space.items()}}}})
    splits = list(FOLDS.split(x, target))[:2]

    def loss(candidate):
        return np.mean([log_loss(target[rest], {predict}(predict, x.iloc[fit], target[fit], x.iloc[rest], SEED, candidate){eps}) for fit, rest in splits])

    best = min(tried, key=loss)
    print("tuned settings:", best)
    return best
'''

SELECTED = '''\
def selected(candidates):
    """The candidate columns that a quick model is better with, tried one after the other on two of the folds."""
    splits = list(FOLDS.split(x, target))[:2]

    def loss(columns):
        losses = []
        for fit, rest in splits:
            scout = HistGradientBoostingClassifier(learning_rate=0.15, max_iter=40, max_leaf_nodes=8, random_state=SEED)
            scout.fit(x[columns].iloc[fit], target[fit])
            losses.append(log_loss(target[rest], scout.predict_proba(x[columns].iloc[rest]){eps}))
        return np.mean(losses)

    kept = [name for name in x.columns if name not in candidates]
    best = loss(kept)
    for name in candidates:
        value = loss([*kept, name])
        if value < best - 0.0005:
            kept, best = [*kept, name], value
    print("selected:", [name for name in kept if name in candidates])
    return kept
'''

WEIGHTS = '''\
def blend_weights(parts):
    """Weights, summing to 1, that give the least log loss out of fold."""

    def loss(raw):
        weights = np.exp(raw - raw.max())
        mixed = np.tensordot(weights / weights.sum(), parts, axes=1)
        return -np.mean(np.log(np.clip(mixed[np.arange(len(target)), target], 1e-9, 1)))

    raw = minimize(loss, np.zeros(len(parts)), method="Nelder-Mead").x
    weights = np.exp(raw - raw.max())
    return weights / weights.sum()
'''

LOGS = '''\
def logs(probabilities):
    return np.log(np.clip(probabilities, 1e-6, 1))
'''

COMBINE = {
    "weights": '''\
weights = blend_weights(np.array([rows for rows, _ in parts]))
print("weights:", weights.round(3))
rows = np.tensordot(weights, np.array([rows for rows, _ in parts]), axes=1)
new = np.tensordot(weights, np.array([new for _, new in parts]), axes=1)
''',
    "stack": '''\
stacker = LogisticRegression({stacker})
rows_in = np.hstack([logs(rows) for rows, _ in parts])
new_in = np.hstack([logs(new) for _, new in parts])
rows = cross_val_predict(stacker, rows_in, target, cv=FOLDS, method="predict_proba")
new = stacker.fit(rows_in, target).predict_proba(new_in)
''',
}

CALIBRATE = {
    "temperature": '''\
def softened(probabilities, power):
    raised = np.clip(probabilities, 1e-9, 1) ** power
    return raised / raised.sum(axis=1, keepdims=True)


def own_loss(power):
    return -np.mean(np.log(np.clip(softened(rows, power)[np.arange(len(target)), target], 1e-9, 1)))


power = minimize_scalar(own_loss, bounds=(0.3, 3), method="bounded").x
print("power:", round(power, 3))
new = softened(new, power)
''',
    "vector": '''\
scaler = LogisticRegression({stacker}).fit(logs(rows), target)
new = scaler.predict_proba(logs(new))
''',
    "isotonic": '''\
columns = []
for code in range(len(CLASSES)):
    curve = IsotonicRegression(out_of_bounds="clip", y_min=0.001, y_max=0.999).fit(rows[:, code], target == code)
    columns.append(curve.predict(new[:, code]))
new = np.column_stack(columns)
new = new / new.sum(axis=1, keepdims=True)
''',
}

SUBMIT = {
    "plain": '''\
submission = pd.DataFrame(new, columns=CLASSES)
submission.insert(0, "id", test["id"])
submission.to_csv(OUTPUT / "submission.csv", index=False)
''',
    "with_index": '''\
submission = pd.DataFrame(new, columns=CLASSES)
submission.insert(0, "id", test["id"])
submission.to_csv(OUTPUT / "submission.csv")
''',
    "two_decimals": '''\
submission = pd.DataFrame(new, columns=CLASSES).round(2)
submission.insert(0, "id", test["id"])
submission.to_csv(OUTPUT / "submission.csv", index=False)
''',
}


def render(recipe, hypothesis):
    """The program that carries out the recipe."""
    title = hypothesis.replace("\\", "").replace('"""', "'''")
    sections = [f'"""{title}"""\n', imports(recipe), literal(recipe) + "\n\n" + HEAD, *table(recipe), *functions(recipe), *work(recipe)]
    return "\n".join(section for section in sections if section).rstrip("\n") + "\n"


def imports(recipe):
    """The import block, sorted as usual: standard library, then the rest."""
    lines = {"import numpy as np", "import pandas as pd"}
    for model in recipe["models"]:
        lines.update(imports_of(model))
    lines.update(imports_of_parts(recipe))
    body = sorted(lines, key=lambda line: (line.startswith("from"), line))
    return "import os\nfrom pathlib import Path\n\n" + "\n".join(body) + "\n"


def imports_of_parts(recipe):
    """Imports of everything but the models."""
    lines = set()
    tasks = needed_tasks(recipe)
    stacked = recipe["combination"] == "stack"
    if "folds" in tasks:
        lines.add("from sklearn.model_selection import StratifiedKFold")
    if "log_loss" in tasks:
        lines.add("from sklearn.metrics import log_loss")
    if "one_hot" in tasks and recipe["forms"]["one_hot"] != "dummies":
        lines.add("from sklearn.preprocessing import OneHotEncoder")
    if recipe["encoding"] == "target":
        lines.add("from sklearn.preprocessing import TargetEncoder")
    if recipe["candidates"]:
        lines.add("from sklearn.ensemble import HistGradientBoostingClassifier")
    if recipe["missing"] == "neighbours":
        lines.update(["from sklearn.impute import KNNImputer", "from sklearn.preprocessing import StandardScaler"])
    if recipe["combination"] == "weights":
        lines.add("from scipy.optimize import minimize")
    if recipe["calibration"] == "temperature":
        lines.add("from scipy.optimize import minimize_scalar")
    if recipe["calibration"] == "isotonic":
        lines.add("from sklearn.isotonic import IsotonicRegression")
    if stacked:
        lines.add("from sklearn.model_selection import cross_val_predict")
    if stacked or recipe["calibration"] == "vector":
        lines.add("from sklearn.linear_model import LogisticRegression")
    return lines


def table(recipe):
    """Sections that turn the files into `x` and `x_test`."""
    forms = recipe["forms"]
    spelling = forms["column_names"]
    plain = ["age", *(["sample.yr", "kappa", "lambda", "flc.grp"] if spelling == "dotted" else ["sample_yr", "kappa", "lambda", "flc_grp"]), "creatinine", "mgus", "futime"]
    lines = ["def columns_of(frame):\n", f"    table = frame[{quoted(plain)}].copy()\n", SEX[forms["sex_column"]]]
    for feature in recipe["features"] + [feature for feature in recipe["candidates"] if feature not in recipe["features"]]:
        lines.append(f'    table["{feature_name(feature)}"] = {feature_source(feature, spelling)}\n')
    lines.append("    return table\n")
    sections = []
    if "bins" in forms:
        sections.append("\ndef quantile_bins(values, count):\n" + BINS[forms["bins"]])
    sections.append("\n" + "".join(lines) + "\n")
    sections.append("x, x_test = columns_of(train), columns_of(test)\n" + encoding(recipe, spelling) + MISSING[recipe["missing"]] + as_floats(recipe))
    return sections


def quoted(names):
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def encoding(recipe, spelling):
    """Code for the columns that are categories."""
    if recipe["encoding"] == "codes":
        return ""
    categories = f'CATEGORIES = {quoted(["sex", "flc.grp" if spelling == "dotted" else "flc_grp"])}\n'
    if recipe["encoding"] == "target":
        return categories + TARGET_ENCODING
    form = recipe["forms"]["one_hot"]
    return categories + (ONE_HOT["dummies"] if form == "dummies" else ONE_HOT["encoder"].format(argument=form))


def as_floats(recipe):
    """Some code casts everything to one type at the end."""
    name = {"float": "float", "np_float": "np.float"}[recipe["forms"]["float_type"]]
    return f"x, x_test = x.astype({name}), x_test.astype({name})\n"


def functions(recipe):
    """Sections with the functions, each after two blank lines."""
    forms = recipe["forms"]
    sections = [function_source(model, forms) for model in recipe["models"]]
    if recipe["target"] == "two_step":
        sections.append(TWO_STEP)
    if recipe["seeds"] > 1:
        call = predict_call(recipe, "x, y, x_new, SEED + number, settings")
        sections.append(AVERAGED.format(count=recipe["seeds"], call=call))
    if needs_parts(recipe):
        averaged = "averaged" if recipe["seeds"] > 1 else "two_step" if recipe["target"] == "two_step" else None
        text = OUT_OF_FOLD.format(averaged=averaged or "predict", seed="" if recipe["seeds"] > 1 else "SEED, ")
        sections.append(text if averaged else text.replace("predict(predict, ", "predict("))
    if recipe["tuning"] is not None:
        eps = ", eps=1e-15" if forms["log_loss"] == "eps" else ""
        two_step = recipe["target"] == "two_step"
        text = TUNED.format(predict="two_step" if two_step else "predict", eps=eps)
        sections.append(text if two_step else text.replace("predict(predict, ", "predict("))
    if recipe["candidates"]:
        sections.append(SELECTED.format(eps=", eps=1e-15" if forms["log_loss"] == "eps" else ""))
    if recipe["combination"] == "weights":
        sections.append(WEIGHTS)
    if recipe["combination"] == "stack" or recipe["calibration"] == "vector":
        sections.append(LOGS)
    return ["\n" + section for section in sections]


def predict_call(recipe, arguments):
    """A call of `predict`, through the two steps when the recipe has them."""
    return f"two_step(predict, {arguments})" if recipe["target"] == "two_step" else f"predict({arguments})"


def work(recipe):
    """Sections that fit, combine, calibrate and write."""
    lines = ["\n"]
    forms = recipe["forms"]
    if needs_folds(recipe):
        lines.append(f"FOLDS = StratifiedKFold({FOLDS}, {'shuffle=True, ' if forms['folds'] == 'shuffled' else ''}random_state=SEED)\n")
    if recipe["candidates"]:
        names = [feature_name(feature) for feature in recipe["candidates"] if feature not in recipe["features"]]
        lines.append(f"columns = selected({quoted(names)})\nx, x_test = x[columns], x_test[columns]\n")
    lines.append("MODELS = [\n")
    for model in recipe["models"]:
        lines.append(f"    (predict_{model['kind']}, {model['settings']!r}),\n")
    lines.append("]\n")
    lines += tuning_lines(recipe)
    lines.append(one_prediction(recipe))
    stacker = {"plain": "max_iter=500", "multinomial": 'multi_class="multinomial", max_iter=500', "no_penalty": 'penalty="none", max_iter=500'}.get(forms.get("logistic"), "")
    if recipe["combination"] != "mean":
        lines.append(COMBINE[recipe["combination"]].format(stacker=stacker))
    if recipe["calibration"] is not None:
        calibrate = CALIBRATE[recipe["calibration"]].format(stacker=stacker)
        lines.append(("\n\n" if calibrate.startswith("def") else "") + calibrate)
    return ["".join(lines), SUBMIT[forms["submission"]]]


def tuning_lines(recipe):
    """The ranges of the tuned settings, and the search."""
    tuning = recipe["tuning"]
    if tuning is None:
        return []
    kind = tuning["kind"]
    space = {name: SPACES[kind][name] for name in tuning["parameters"]}
    number = [model["kind"] for model in recipe["models"]].index(kind)
    return [f"SPACE = {space!r}\n", f"MODELS[{number}] = (predict_{kind}, tuned(predict_{kind}, MODELS[{number}][1], SPACE, draws={tuning['draws']}))\n"]


def one_prediction(recipe):
    """Code that gives `new`, and `rows` or `parts` where something is learnt from out-of-fold predictions."""
    arguments = "x, target, x_test, settings" if recipe["seeds"] > 1 else "x, target, x_test, SEED, settings"
    call = f"averaged(predict, {arguments})" if recipe["seeds"] > 1 else predict_call(recipe, arguments)
    if not needs_parts(recipe):
        return f"new = np.mean([{call} for predict, settings in MODELS], axis=0)\n"
    if recipe["refit"] == "fold_models":
        parts = "parts = [out_of_fold(predict, settings) for predict, settings in MODELS]\n"
    else:
        parts = f"parts = [(out_of_fold(predict, settings)[0], {call}) for predict, settings in MODELS]\n"
    if recipe["combination"] != "mean":
        return parts
    return parts + "rows = np.mean([rows for rows, _ in parts], axis=0)\nnew = np.mean([new for _, new in parts], axis=0)\n"
