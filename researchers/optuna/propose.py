"""A researcher that asks Optuna: reads a role's document on standard input, writes a proposal on standard output.

It keeps nothing between two questions: what was measured comes with each of them, as `view.parameters.observations`,
so that the same question gives the same answer. Usage: propose.py tpe|cmaes|random
"""

import json
import sys
import warnings

import optuna
from optuna.distributions import FloatDistribution, IntDistribution

# Points that are drawn at random before a model of them is worth anything; CMA-ES starts from the best tenth.
STARTUP = {"tpe": 5, "cmaes": 10}


def distribution(parameter):
    if parameter["type"] == "int":
        return IntDistribution(int(parameter["low"]), int(parameter["high"]), log=parameter["log"])
    return FloatDistribution(parameter["low"], parameter["high"], log=parameter["log"])


def observed(observations, space):
    """Finished trials inside the declared bounds: a value that somebody moved outside tells the sampler nothing."""
    for each in observations:
        values = {name: int(value) if isinstance(space[name], IntDistribution) else value for name, value in each["values"].items()}
        if all(space[name].low <= value <= space[name].high for name, value in values.items()):
            yield optuna.trial.create_trial(params=values, distributions=space, value=each["score"])


def sampler(kind, seed, trials):
    if len(trials) < STARTUP.get(kind, len(trials) + 1):
        return optuna.samplers.RandomSampler(seed=seed)
    if kind == "cmaes":
        # Warm starting CMA-ES (Nomura et al., AAAI 2021): every question starts it from all that was measured.
        return optuna.samplers.CmaEsSampler(seed=seed, source_trials=trials, n_startup_trials=0)
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP["tpe"], multivariate=True)


def written(parameter, value):
    return str(int(value)) if parameter["type"] == "int" else repr(float(f"{value:.6g}"))


def main():
    request = json.load(sys.stdin)
    parameters = request["view"].get("parameters")
    if parameters is None:
        sys.exit("the environment declares no surface.parameters, so that there is nothing to tune")
    kind = sys.argv[1] if len(sys.argv) > 1 else "tpe"
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    declared = parameters["declared"]
    space = {each["name"]: distribution(each) for each in declared}
    trials = list(observed(parameters["observations"], space))
    # A further round comes after a refusal: the same draw would be refused again.
    seed = (request["seed"] + 7919 * (request["round"] - 1)) % 2**32
    direction = request["view"]["environment"]["metrics"][0]["direction"]
    study = optuna.create_study(direction=direction, sampler=sampler(kind, seed, trials))
    study.add_trials(trials)
    asked = study.ask(space).params
    texts = {each["name"]: written(each, asked[each["name"]]) for each in declared}
    edits = [
        {"path": each["file"], "search": each["after"] + each["text"], "replace": each["after"] + texts[each["name"]]}
        for each in declared
        if each["text"] != texts[each["name"]]
    ]
    chosen = ", ".join(f"{name} = {text}" for name, text in texts.items())
    hypothesis = f"{kind} over {len(trials)} measured points of this program suggests {chosen}"
    json.dump({"plan": {"hypothesis": hypothesis}, "edits": edits}, sys.stdout)


main()
