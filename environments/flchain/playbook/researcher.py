"""The model-free reference researcher: no language model, only moves, a memory of which kinds paid, and repairs.

    python3 playbook/researcher.py < question.json > answer.json
"""

import sys

sys.dont_write_bytecode = True

from dice import pick
from exchange import answer_with, base_program, base_recipe
from models import BOOSTERS, FORESTS, SPACES, TITLES
from moves import MOVES, describe, family, make
from recipe import draw_recipe
from render import render
from repair import Failure, patch, repair

#: How readily each kind of move comes to mind before anything was learnt. Not listed: 1.
PRIOR = {
    "Select features": 5, "Add model": 4, "Add features": 3, "Adjust settings": 3, "Learn slower": 2, "Simplify": 2, "Tune": 2, "Average seeds": 2,
    "Encode": 0.5, "Fill gaps": 0.5, "Drop features": 0.5, "Drop model": 0.5, "Replace model": 0.5, "Stop tuning": 0.5, "Calibrate forest": 0.5,
}
#: Families that are strong on tables are drafted more often.
FAMILY_PRIOR = {**{kind: 1 for kind in SPACES}, **{kind: 4 for kind in BOOSTERS}, **{kind: 2 for kind in FORESTS}}
ATTEMPTS = 40
#: Characters of a sentence that tell it from another one; a memory may shorten what it shows.
COMPARED = 200


def research(question, generator):
    """(program, hypothesis, expected change) for the question's role."""
    role = {"draft": draft, "improve": improve, "debug": debug}[question["role"]]
    return role(question["view"], question, generator)


def draft(view, question, generator):
    """A new recipe around families that no earlier draft in memory was built on, as far as there are any."""
    told = " ".join(entry["hypothesis"] for entry in view.get("memory", []) if family(entry["hypothesis"]) == "Draft")
    weights = {kind: weight / (1 + 3 * told.count(TITLES[kind])) for kind, weight in FAMILY_PRIOR.items()}
    kinds = [pick(generator, weights)]
    if generator.random() < 0.3:
        kinds.append(pick(generator, {kind: weight for kind, weight in weights.items() if kind not in kinds}))
    recipe = draw_recipe(generator, kinds, derived=(1, 4))
    for name, share in (("Select features", 0.5), ("Tune", 0.2)):
        if generator.random() < share:
            recipe = (make(name, recipe, generator) or (recipe, ""))[0]
    hypothesis = f"Draft: {describe(recipe)}."
    return render(recipe, hypothesis), hypothesis, paid(view.get("memory", [])).get("Draft")


def improve(view, question, generator):
    """One move on the base, two when refused before: of a kind that paid, and not in words that were tried already."""
    recipe = base_recipe(question)
    if recipe is None:
        return draft(view, question, generator)
    memory = view.get("memory", [])
    weights = weights_of_moves(memory)
    tried = {entry["hypothesis"][:COMPARED] for entry in memory}
    for _ in range(ATTEMPTS):
        moved = several(recipe, weights, generator, 2 if question.get("violations") or generator.random() < 0.3 else 1)
        if moved is not None and moved[1][:COMPARED] not in tried:
            changed, hypothesis = moved
            return render(changed, hypothesis), hypothesis, paid(memory).get(family(hypothesis))
    return draft(view, question, generator)


def several(recipe, weights, generator, count):
    """`count` moves one after the other; the sentence opens with the first one's kind."""
    sentences = []
    for _ in range(count):
        name = pick(generator, weights)
        made = make(name, recipe, generator)
        if made is None:
            return None
        recipe, sentence = made
        sentences.append(sentence)
        # The same kind twice may undo itself.
        weights = {other: weight for other, weight in weights.items() if other != name}
    return recipe, " ".join(sentences)


def weights_of_moves(memory):
    """Kinds of moves that beat the best of their time come to mind more readily, those that did not less so."""
    won, lost = outcomes(memory)
    return {name: PRIOR.get(name, 1) * (1 + 2 * won.get(name, 0)) / (1 + 0.5 * lost.get(name, 0)) for name in MOVES}


def outcomes(memory):
    """How often each kind of move beat the best value so far, and how often not. Lower is better in this environment."""
    won, lost, best = {}, {}, None
    for entry in memory:
        name, value = family(entry["hypothesis"]), entry["value"]
        if value is None:
            continue
        if name is not None:
            side = won if best is None or value < best else lost
            side[name] = side.get(name, 0) + 1
        best = value if best is None else min(best, value)
    return won, lost


def paid(memory):
    """The mean gain of each kind of move over the best of its time: what to expect of the next one. Losses count as 0."""
    gains, best = {}, None
    for entry in memory:
        name, value = family(entry["hypothesis"]), entry["value"]
        if value is None:
            continue
        if best is not None and name is not None:
            gains.setdefault(name, []).append(max(best - value, 0))
        best = value if best is None else min(best, value)
    return {name: float(f"{sum(values) / len(values):.3g}") for name, values in gains.items()}


def debug(view, question, generator):
    """Repairs the base by what its failure says; a base that nobody can repair is followed by a fresh draft."""
    recipe, failure = base_recipe(question), Failure(view.get("failure") or {})
    if recipe is None:
        patched = patch(base_program(question), failure)
        return (*patched, None) if patched else draft(view, question, generator)
    repaired = repair(recipe, failure, generator)
    if repaired is None or question.get("violations"):
        return draft(view, question, generator)
    changed, sentence = repaired
    besides = several(changed, weights_of_moves(view.get("memory", [])), generator, 1) if generator.random() < 0.4 else None
    if besides is not None:
        return render(besides[0], f"Repair: {sentence}. {besides[1]}"), f"Repair: {sentence}. {besides[1]}", None
    hypothesis = f"Repair: {sentence}; else as before: {describe(changed)}."
    return render(changed, hypothesis), hypothesis, None


if __name__ == "__main__":
    answer_with(research)
