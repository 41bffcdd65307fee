"""Moves: each changes one thing of a recipe and says so in a sentence, or gives None where it does not apply.

A sentence opens with the name of its move, "Add features: …", so that whoever reads the memory of a run knows which
kind of step it was. No move knows this data set's answer: every number is drawn from a range or a step from what is there.
"""

from dice import draw, some, step
from features import draw_features, pairs_of
from models import BOOSTERS, FORESTS, SEEDLESS, SPACES, TITLES
from recipe import CALIBRATIONS, COMBINATIONS, ENCODINGS, MISSING, copied, draw_model, settle


def add_features(recipe, generator):
    fresh = [feature for feature in draw_features(generator, 2, 4) if feature not in recipe["features"]]
    if not fresh or len(recipe["features"]) + len(fresh) > 16:
        return None
    recipe["features"] += fresh
    return f"give the models {listed(fresh)}, so that they need not find them split by split"


def drop_features(recipe, generator):
    if not recipe["features"]:
        return None
    dropped = generator.sample(recipe["features"], min(len(recipe["features"]), generator.randint(1, 2)))
    recipe["features"] = [feature for feature in recipe["features"] if feature not in dropped]
    return f"leave out {listed(dropped)}, which may only add noise"


def swap_features(recipe, generator):
    if drop_features(recipe, generator) is None:
        return None
    fresh = [feature for feature in draw_features(generator, 1, 2) if feature not in recipe["features"]]
    recipe["features"] += fresh
    return f"replace a derived column or two by {listed(fresh)}" if fresh else None


def select_features(recipe, generator):
    """Cross-validation inside the program decides; what it decided is not known here, so candidates only add up."""
    known = recipe["features"] + recipe["candidates"]
    drawn = pairs_of(generator.choice(["years", "concentration"])) if generator.random() < 0.5 else draw_features(generator, 6, 10)
    fresh = [feature for feature in drawn if feature not in known]
    if not fresh or len(recipe["candidates"]) > 8:
        return None
    recipe["candidates"] += fresh
    return f"let cross-validation choose among the derived columns {listed(fresh)}"


def change_encoding(recipe, generator):
    recipe["encoding"] = generator.choice([encoding for encoding in ENCODINGS if encoding != recipe["encoding"]])
    how = {"codes": "plain codes", "one_hot": "one column per value", "target": "the outcome's smoothed mean"}[recipe["encoding"]]
    return f"write sex and the light chain group as {how}"


def change_missing(recipe, generator):
    recipe["missing"] = generator.choice([missing for missing in MISSING if missing != recipe["missing"]])
    how = {"leave": "leave them to the models", "median": "fill in the median", "median_flag": "fill in the median and flag the gap",
           "neighbours": "fill in from the nearest rows"}[recipe["missing"]]
    return f"where values are missing, {how}"


def change_settings(recipe, generator):
    model = generator.choice(recipe["models"])
    space = SPACES[model["kind"]]
    names = some(generator, list(space), 1, 2)
    for name in names:
        model["settings"][name] = step(generator, space[name], model["settings"][name])
    return f"for {TITLES[model['kind']]}, set " + listed([f"{name} to {model['settings'][name]}" for name in names])


def redraw_settings(recipe, generator):
    model = generator.choice(recipe["models"])
    model["settings"] = {name: draw(generator, space) for name, space in SPACES[model["kind"]].items()}
    return f"start {TITLES[model['kind']]} over with other settings: {settings_text(model)}"


def learn_slower(recipe, generator):
    boosted = [model for model in recipe["models"] if model["kind"] in BOOSTERS]
    if not boosted:
        return None
    model = generator.choice(boosted)
    rounds = "max_iter" if model["kind"] == "hist_gradient" else "n_estimators"
    factor = generator.choice([1.5, 2.0])
    low, high = SPACES[model["kind"]]["learning_rate"][1:]
    rate = max(model["settings"]["learning_rate"] / factor, low)
    model["settings"]["learning_rate"] = float(f"{rate:.3g}")
    model["settings"][rounds] = min(int(model["settings"][rounds] * factor), SPACES[model["kind"]][rounds][2])
    return f"let {TITLES[model['kind']]} learn slower for longer: rate {model['settings']['learning_rate']}, {model['settings'][rounds]} rounds"


def smaller_model(recipe, generator):
    sizes = {"num_leaves": -1, "max_leaf_nodes": -1, "max_depth": -1, "n_estimators": -1, "max_iter": -1, "C": -1, "n_knots": -1,
             "min_child_samples": 1, "min_samples_leaf": 1, "min_child_weight": 1, "reg_lambda": 1, "l2_regularization": 1, "alpha": 1, "n_neighbors": 1}
    model = generator.choice(recipe["models"])
    names = [name for name in model["settings"] if name in sizes]
    changed = []
    for name in some(generator, names, 1, 2):
        moved = towards(SPACES[model["kind"]][name], model["settings"][name], sizes[name])
        if moved != model["settings"][name]:
            model["settings"][name] = moved
            changed.append(f"{name} {moved}")
    return f"make {TITLES[model['kind']]} simpler, in case it overfits: {listed(changed)}" if changed else None


def towards(space, value, sign):
    """A clear step in one direction, inside the range."""
    kind, *bounds = space
    if kind == "choice":
        place = min(max(bounds.index(value) + sign, 0), len(bounds) - 1)
        return bounds[place]
    low, high = bounds
    moved = min(max(value * (1.7 if sign > 0 else 1 / 1.7), low), high)
    return int(round(moved)) if kind == "log_int" else float(f"{moved:.3g}")


def add_model(recipe, generator):
    kinds = [kind for kind in SPACES if kind not in [model["kind"] for model in recipe["models"]]]
    if not kinds or len(recipe["models"]) >= 4:
        return None
    kind = generator.choice(kinds)
    recipe["models"].append(draw_model(generator, kind))
    recipe["combination"] = generator.choice([*COMBINATIONS, "weights"])
    return f"add {TITLES[kind]} to the blend ({combined(recipe)}), whose errors should differ"


def drop_model(recipe, generator):
    if len(recipe["models"]) < 2:
        return None
    model = generator.choice(recipe["models"])
    recipe["models"].remove(model)
    return f"take {TITLES[model['kind']]} out of the blend"


def replace_model(recipe, generator):
    old = generator.choice(recipe["models"])
    kinds = [kind for kind in SPACES if kind not in [model["kind"] for model in recipe["models"]]]
    kind = generator.choice(kinds)
    recipe["models"][recipe["models"].index(old)] = draw_model(generator, kind)
    return f"put {TITLES[kind]} in the place of {TITLES[old['kind']]}"


def change_combination(recipe, generator):
    if len(recipe["models"]) < 2:
        return None
    recipe["combination"] = generator.choice([name for name in COMBINATIONS if name != recipe["combination"]])
    return f"combine the models by {combined(recipe)}"


def tune(recipe, generator):
    if recipe["tuning"] is not None:
        return None
    model = generator.choice(recipe["models"])
    names = some(generator, list(SPACES[model["kind"]]), 1, 3)
    recipe["tuning"] = {"kind": model["kind"], "parameters": names, "draws": generator.choice([4, 6, 8, 10])}
    return f"let {TITLES[model['kind']]} choose {listed(names)} by cross-validation among {recipe['tuning']['draws']} random draws"


def stop_tuning(recipe, generator):
    if recipe["tuning"] is None:
        return None
    recipe["tuning"] = None
    return "keep the settings fixed and spend the time on the final models"


def calibrate(recipe, generator):
    recipe["calibration"] = generator.choice([way for way in [None, *CALIBRATIONS] if way != recipe["calibration"]])
    how = {None: "trust the probabilities as they come", "temperature": "soften or sharpen all probabilities by one power learnt out of fold",
           "vector": "rescale each class by a regression on the logarithms", "isotonic": "map each class through a monotone curve"}
    return how[recipe["calibration"]]


def average_seeds(recipe, generator):
    if recipe["seeds"] > 1 or all(model["kind"] in SEEDLESS for model in recipe["models"]):
        return None
    recipe["seeds"] = generator.randint(2, 4)
    return f"average {recipe['seeds']} seeds, since log loss punishes a model's variance"


def change_target(recipe, generator):
    recipe["target"] = "direct" if recipe["target"] == "two_step" else "two_step"
    return "predict death first and its cause among the dead second" if recipe["target"] == "two_step" else "predict the three classes at once"


def change_stopping(recipe, generator):
    able = [model for model in recipe["models"] if model["kind"] in BOOSTERS + ("mlp",)]
    if not able:
        return None
    model = generator.choice(able)
    model["early_stopping"] = not model.get("early_stopping")
    return f"{'stop' if model['early_stopping'] else 'do not stop'} {TITLES[model['kind']]} early on rows held aside"


def change_refit(recipe, generator):
    recipe["refit"] = "fold_models" if recipe["refit"] == "all_rows" else "all_rows"
    return "average the models of the folds" if recipe["refit"] == "fold_models" else "fit the final models on all rows"


def calibrate_forest(recipe, generator):
    forests = [model for model in recipe["models"] if model["kind"] in FORESTS]
    if not forests:
        return None
    model = generator.choice(forests)
    model["calibrated"] = not model.get("calibrated")
    return f"{'calibrate' if model['calibrated'] else 'do not calibrate'} {TITLES[model['kind']]} by itself"


MOVES = {
    "Add features": add_features,
    "Drop features": drop_features,
    "Swap features": swap_features,
    "Select features": select_features,
    "Encode": change_encoding,
    "Fill gaps": change_missing,
    "Adjust settings": change_settings,
    "Redraw settings": redraw_settings,
    "Learn slower": learn_slower,
    "Simplify": smaller_model,
    "Add model": add_model,
    "Drop model": drop_model,
    "Replace model": replace_model,
    "Combine": change_combination,
    "Tune": tune,
    "Stop tuning": stop_tuning,
    "Calibrate": calibrate,
    "Average seeds": average_seeds,
    "Restate target": change_target,
    "Stop early": change_stopping,
    "Refit": change_refit,
    "Calibrate forest": calibrate_forest,
}


def make(name, recipe, generator):
    """The move applied to a copy: (recipe, sentence), or None where it does not apply."""
    changed = copied(recipe)
    sentence = MOVES[name](changed, generator)
    if sentence is None:
        return None
    return settle(changed, generator), f"{name}: {sentence}."


def family(hypothesis):
    """The name of the move that a sentence opens with; None for anybody else's sentence."""
    name = hypothesis.split(":", 1)[0]
    return name if name in MOVES or name == "Draft" else None


def describe(recipe):
    """What a whole recipe is, in a sentence."""
    models = listed([TITLES[model["kind"]] for model in recipe["models"]])
    parts = [f"{models}{', ' + combined(recipe) if len(recipe['models']) > 1 else ''}"]
    if recipe["features"]:
        parts.append(f"with {listed(recipe['features'])}")
    if recipe["candidates"]:
        parts.append(f"cross-validation choosing among {len(recipe['candidates'])} more")
    if recipe["target"] == "two_step":
        parts.append("death first, its cause second")
    if recipe["calibration"] is not None:
        parts.append(f"{recipe['calibration']} calibration")
    if recipe["tuning"] is not None:
        parts.append(f"{listed(recipe['tuning']['parameters'])} tuned by cross-validation")
    return ", ".join(parts)


def combined(recipe):
    return {"mean": "a plain mean", "weights": "weights learnt out of fold", "stack": "a regression on their logarithms"}[recipe["combination"]]


def settings_text(model):
    return ", ".join(f"{name} {value}" for name, value in model["settings"].items())


def listed(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
