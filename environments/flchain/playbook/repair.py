"""Repairs: what a failure says, and what to change because of it.

The last traceback names an exception, a message and the failing line. Every rule below is keyed on the kind of exception
and on names that its message quotes, as a person would read it. A rule that knows a culprit among the recipe's ways of
writing takes another way, which may fail in its turn. Where no rule fits, or the program is not one of ours, the program
itself is patched where that is safe, and else given up.
"""

import ast
import re

from forms import draw_form, tasks_pointed_at
from features import columns_of, draw_features, parse
from models import MODULES, fit_seconds
from recipe import cheaper, copied, draw_model, key, seconds, settle


class Failure:
    """A failed trial: status, reason, and the parts of its last traceback (empty text where there is none)."""

    def __init__(self, failure):
        self.status = failure.get("status") or ""
        self.reason = failure.get("reason") or ""
        output = failure.get("output") or ""
        last = output[output.rfind("Traceback (most recent call last)"):]
        raised = re.findall(r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt)): ?(.*)", last, re.MULTILINE)
        self.kind, self.message = raised[-1] if raised else ("", "")
        self.kind = self.kind.rsplit(".", 1)[-1]
        after = last[last.rfind(self.message):] if self.message else ""
        self.text = f"{self.message}\n{after}"
        frames = re.findall(r'File "[^"]*solution\.py", line (\d+), in .*\n\s+(.*)', last)
        self.line = int(frames[-1][0]) if frames else 0
        self.source = frames[-1][1] if frames else ""


def repair(recipe, failure, generator):
    """(recipe, sentence) of the first rule that changes something, or None."""
    for rule in RULES:
        changed = copied(recipe)
        sentence = rule(changed, failure, generator)
        if sentence is not None and key(settle(changed, generator)) != key(recipe):
            return changed, sentence
    return None


def other_way(recipe, tasks, generator):
    """Another way for the first of these tasks that has one; its name, or None."""
    for task in tasks:
        form = draw_form(generator, task, without=(recipe["forms"].get(task),)) if task in recipe["forms"] else None
        if form is not None:
            recipe["forms"][task] = form
            return task.replace("_", " ")
    return None


def leave_out(recipe, culprits):
    """Takes derived columns out, wherever they are used."""
    for part in ("features", "candidates"):
        recipe[part] = [feature for feature in recipe[part] if feature not in culprits]


def too_slow(recipe, failure, generator):
    if failure.status not in ("timed_out", "over_budget") and failure.kind != "MemoryError":
        return None
    goal = seconds(recipe) / 3
    while seconds(recipe) > goal and cheaper(recipe):
        pass
    return "It used more than it may: do the same with a third of the work"


def refused_name(recipe, failure, generator):
    """`unexpected keyword argument 'x'`, `has no attribute 'x'`, `The 'x' parameter of …`: whoever wrote x writes it otherwise."""
    match = re.search(r"unexpected keyword argument '(\w+)'|has no attribute '(\w+)'|The '(\w+)' parameter of", failure.message)
    if match is None:
        return None
    symbol = next(name for name in match.groups() if name)
    tasks = [task for task in tasks_pointed_at(symbol, recipe["forms"]) if of_this_library(task, failure)]
    task = other_way(recipe, tasks or tasks_pointed_at(symbol, recipe["forms"]), generator)
    return f"{symbol} is refused: write {task} in another way" if task else None


def of_this_library(task, failure):
    """Two libraries share a keyword; the message or the failing line says whose it is."""
    said = (failure.message + failure.source).lower()
    mine = {"lightgbm": "lgb", "xgboost": "xgb"}.get(task.split("_")[0])
    return mine is None or mine in said


def removed_function(recipe, failure, generator):
    match = re.search(r"`np\.(\w+)`", failure.message)
    task = other_way(recipe, tasks_pointed_at(match[1], recipe["forms"]), generator) if match else None
    return f"np.{match[1]} is gone: write {task} in another way" if task else None


def missing_values(recipe, failure, generator):
    if "contains NaN" not in failure.text or recipe["missing"] != "leave":
        return None
    recipe["missing"] = generator.choice(["median", "median_flag"])
    return "A model takes no missing values: fill them in"


def infinite_values(recipe, failure, generator):
    if "infinity" not in failure.text and "inf" not in re.findall(r"\w+", failure.message):
        return None
    culprits = [feature for feature in recipe["features"] + recipe["candidates"] if parse(feature)[0] in ("ratio", "log")]
    leave_out(recipe, culprits)
    return "Some values are infinite: leave out the ratios and logarithms" if culprits else None


def text_values(recipe, failure, generator):
    if not re.search(r"could not convert string|string dtype|dtypes must be int|non-numeric data|dtype '?(str|object)", failure.text):
        return None
    task = other_way(recipe, ["sex_column"], generator)
    return "A text column reached the models: turn it into numbers in another way" if task else None


def unknown_column(recipe, failure, generator):
    if failure.kind != "KeyError":
        return None
    if re.search(r"\w+\.\w+", failure.message):
        task = other_way(recipe, ["column_names"], generator)
        return "A column has another name in the files: spell it as they do" if task else None
    named = [feature for feature in recipe["features"] + recipe["candidates"] if any(column in failure.message for column in columns_of(feature))]
    leave_out(recipe, named)
    return "A column is not there: leave out what is derived from it" if named else None


def label_classes(recipe, failure, generator):
    if "Invalid classes inferred" not in failure.message:
        return None
    task = other_way(recipe, ["xgboost_labels"], generator)
    return "XGBoost wants classes as numbers from 0" if task else None


def fold_arguments(recipe, failure, generator):
    if "random_state has no effect" not in failure.message:
        return None
    task = other_way(recipe, ["folds"], generator)
    return "Folds take a seed only when they are shuffled" if task else None


def bin_edges(recipe, failure, generator):
    if "Bin edges must be unique" not in failure.message:
        return None
    if generator.random() < 0.5:
        leave_out(recipe, [feature for feature in recipe["features"] + recipe["candidates"] if parse(feature)[0] == "bins"])
        return "Bin edges coincide: do without bins"
    task = other_way(recipe, ["bins"], generator)
    return "Bin edges coincide: cut in another way" if task else None


def not_installed(recipe, failure, generator):
    match = re.search(r"No module named '(\w+)'|cannot import name '(\w+)'", failure.message)
    if match is None:
        return None
    name = match[1] or match[2]
    gone = [model for model in recipe["models"] if MODULES.get(model["kind"]) == name]
    recipe["models"] = [model for model in recipe["models"] if model not in gone] or [draw_model(generator, "hist_gradient")]
    return f"{name} is not there: go without" if gone else None


def refused_submission(recipe, failure, generator):
    if failure.status != "no_result":
        return None
    task = other_way(recipe, ["submission"], generator)
    return f"The submission was refused ({failure.reason[:80]}): write it in another way" if task else None


def failing_model(recipe, failure, generator):
    """Nothing fits: without the model whose function failed, or with fewer derived columns, it may run."""
    named = [model for model in recipe["models"] if f"predict_{model['kind']}" in failure.source]
    if len(recipe["models"]) > 1:
        recipe["models"].remove(named[0] if named else max(recipe["models"], key=fit_seconds))
        return f"{failure.kind or failure.status} is not clear to me: try without one of the models"
    if recipe["features"] or recipe["candidates"]:
        recipe["features"], recipe["candidates"] = draw_features(generator, 0, 1), []
        return f"{failure.kind or failure.status} is not clear to me: try with other derived columns"
    return None


RULES = [
    too_slow, refused_name, removed_function, missing_values, infinite_values, text_values, unknown_column, label_classes,
    fold_arguments, bin_edges, not_installed, refused_submission, failing_model,
]


def patch(program, failure):
    """A program that is not ours: takes a refused keyword out of the call on the failing line. None where that is unsafe."""
    match = re.search(r"unexpected keyword argument '(\w+)'", failure.message)
    if match is None or not failure.line:
        return None
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return None
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.lineno <= failure.line <= (call.end_lineno or call.lineno):
            kept = [keyword for keyword in call.keywords if keyword.arg != match[1]]
            if len(kept) < len(call.keywords):
                call.keywords = kept
                return ast.unparse(tree) + "\n", f"{match[1]} is refused: do without it"
    return None
