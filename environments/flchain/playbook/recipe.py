"""A recipe: what a program does, as one literal that stands at its top and can be read back from there."""

import ast
import copy
import json
import pprint

from dice import draw, pick
from features import draw_features, parse
from forms import FORMS, draw_form
from models import BOOSTERS, SPACES, fit_seconds, tasks_of

FOLDS = 4
#: Seconds that a program may take by our guess. Guesses are rough and machines differ, so it is far below any limit.
TARGET_SECONDS = 5.0

ENCODINGS = {"codes": 4, "one_hot": 2, "target": 1}
MISSING = {"leave": 3, "median": 4, "median_flag": 2, "neighbours": 1}
COMBINATIONS = ["mean", "weights", "stack"]
CALIBRATIONS = ["temperature", "vector", "isotonic"]


def draw_model(generator, kind):
    """A model of the family with settings drawn from its ranges."""
    model = {"kind": kind, "settings": {name: draw(generator, space) for name, space in SPACES[kind].items()}}
    if kind in BOOSTERS + ("mlp",) and generator.random() < 0.3:
        model["early_stopping"] = True
    if kind in ("random_forest", "extra_trees") and generator.random() < 0.2:
        model["calibrated"] = True
    return model


def draw_recipe(generator, kinds, derived=(0, 4)):
    """A whole recipe around models of these families, with so many derived columns."""
    recipe = {
        "features": draw_features(generator, *derived),
        "candidates": [],
        "encoding": pick(generator, ENCODINGS),
        "missing": pick(generator, MISSING),
        "models": [draw_model(generator, kind) for kind in kinds],
        "target": "two_step" if generator.random() < 0.15 else "direct",
        "combination": generator.choice(COMBINATIONS) if len(kinds) > 1 else "mean",
        "calibration": generator.choice(CALIBRATIONS) if generator.random() < 0.15 else None,
        "seeds": 1,
        "refit": "all_rows",
        "tuning": None,
        "forms": {},
    }
    return settle(recipe, generator)


def needs_parts(recipe):
    """Whether the combination, the calibration or the final models are made of out-of-fold predictions."""
    combined = len(recipe["models"]) > 1 and recipe["combination"] != "mean"
    return combined or recipe["calibration"] is not None or recipe["refit"] == "fold_models"


def needs_folds(recipe):
    """Whether the program splits its training rows at all."""
    return needs_parts(recipe) or recipe["tuning"] is not None or bool(recipe["candidates"])


def needed_tasks(recipe):
    """Tasks of forms.py that the program has to write down."""
    tasks = ["column_names", "float_type", "submission", "sex_column"]
    for model in recipe["models"]:
        tasks += tasks_of(model)
    if recipe["encoding"] == "one_hot":
        tasks += ["one_hot"]
    if any(parse(feature)[0] == "bins" for feature in recipe["features"] + recipe["candidates"]):
        tasks.append("bins")
    if needs_folds(recipe):
        tasks.append("folds")
    if recipe["tuning"] is not None or recipe["candidates"]:
        tasks.append("log_loss")
    if recipe["combination"] == "stack" and len(recipe["models"]) > 1 or recipe["calibration"] == "vector":
        tasks.append("logistic")
    return [task for task in FORMS if task in tasks]


def settle(recipe, generator):
    """Makes a recipe whole: a way for every task, no more seeds or folds than the time allows."""
    forms = recipe["forms"]
    recipe["forms"] = {task: forms.get(task) or draw_form(generator, task) for task in needed_tasks(recipe)}
    if len(recipe["models"]) == 1:
        recipe["combination"] = "mean"
    if recipe["tuning"] is not None and recipe["tuning"]["kind"] not in [model["kind"] for model in recipe["models"]]:
        recipe["tuning"] = None
    while seconds(recipe) > TARGET_SECONDS and cheaper(recipe):
        pass
    recipe["forms"] = {task: forms.get(task) or recipe["forms"].get(task) or draw_form(generator, task) for task in needed_tasks(recipe)}
    return recipe


def seconds(recipe):
    """A rough guess of the program's time on one slow core."""
    once = {model["kind"]: fit_seconds(model) for model in recipe["models"]}
    total = sum(once.values()) * recipe["seeds"] * (FOLDS - 1 if needs_parts(recipe) else 0)
    if recipe["refit"] == "all_rows":
        total += sum(once.values()) * recipe["seeds"]
    if recipe["tuning"] is not None:
        total += once[recipe["tuning"]["kind"]] * 2 * (recipe["tuning"]["draws"] + 1)
    total += 0.25 * len(recipe["candidates"])
    # The second of the two steps fits only the few who died.
    return total * (1.3 if recipe["target"] == "two_step" else 1)


def cheaper(recipe):
    """Takes one step towards less work, the least harmful first; False when nothing is left to take."""
    tuning = recipe["tuning"]
    if recipe["seeds"] > 1:
        recipe["seeds"] -= 1
    elif tuning is not None and tuning["draws"] > 4:
        tuning["draws"] -= 2
    elif recipe["refit"] == "fold_models":
        recipe["refit"] = "all_rows"
    elif tuning is not None:
        recipe["tuning"] = None
    elif len(recipe["candidates"]) > 4:
        recipe["candidates"] = recipe["candidates"][:-2]
    elif len(recipe["models"]) > 1:
        recipe["models"].remove(max(recipe["models"], key=fit_seconds))
        recipe["combination"] = recipe["combination"] if len(recipe["models"]) > 1 else "mean"
    else:
        return shorten(recipe["models"][0]["settings"])
    return True


def shorten(settings):
    """Fewer rounds or trees."""
    for name in ("n_estimators", "max_iter"):
        if settings.get(name, 0) > 20:
            settings[name] = settings[name] * 2 // 3
            return True
    return False


def copied(recipe):
    return copy.deepcopy(recipe)


def key(recipe):
    """Equal for recipes that give the same program."""
    return json.dumps(recipe, sort_keys=True)


def literal(recipe):
    """The recipe as Python source."""
    return "RECIPE = " + pprint.pformat(recipe, width=110, sort_dicts=False).replace("\n", "\n" + " " * 9)


def read_recipe(program):
    """The recipe at the top of a program; None when there is none, or none that we could have written."""
    try:
        for node in ast.parse(program).body:
            if isinstance(node, ast.Assign) and any(isinstance(name, ast.Name) and name.id == "RECIPE" for name in node.targets):
                recipe = ast.literal_eval(node.value)
                return recipe if is_recipe(recipe) else None
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    return None


def is_recipe(value):
    """Whether somebody's RECIPE is one of ours, as far as moves rely on it."""
    try:
        models_known = all(set(model["settings"]) == set(SPACES[model["kind"]]) for model in value["models"])
        features_known = all(parse(feature) for feature in value["features"] + value["candidates"])
        forms_known = all(form in FORMS[task] for task, form in value["forms"].items())
        tuning = value["tuning"]
        tuning_known = tuning is None or (tuning["kind"] in SPACES and int(tuning["draws"]) > 0 and set(tuning["parameters"]) <= set(SPACES[tuning["kind"]]))
        drawn = (value["encoding"] in ENCODINGS, value["missing"] in MISSING, value["target"] in ("direct", "two_step"),
                 value["combination"] in COMBINATIONS, value["calibration"] in (None, *CALIBRATIONS),
                 value["refit"] in ("all_rows", "fold_models"), 1 <= value["seeds"] <= 10, bool(value["models"]))
        return models_known and features_known and forms_known and tuning_known and all(drawn)
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
