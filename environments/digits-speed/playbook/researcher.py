"""The model-free reference researcher: changes one or two settings at a time, and remembers which changes paid.

    python3 playbook/researcher.py < question.json > answer.json
"""

import re
import sys

sys.dont_write_bytecode = True

from programs import PROGRAM, SETTINGS, answer_with, change, describe, draw_recipe, draw_spellings, read_recipe

CHANGED = re.compile(r"Change (\w+):")


def research(question, generator):
    view = question["view"]
    recipe = read_recipe(view["base"].get("files", {}).get(PROGRAM, ""))
    if question["role"] == "draft" or recipe is None:
        recipe = draw_recipe(generator)
        return recipe, f"Draft: {describe(recipe)}.", None
    if question["role"] == "debug":
        return debug(recipe, view.get("failure") or {}, generator)
    return improve(recipe, view.get("memory", []), generator, bool(question.get("violations")))


def improve(recipe, memory, generator, refused):
    """One change, more of them when refused before; settings whose change paid come to mind more readily."""
    sentences = []
    for _ in range(2 if refused or generator.random() < 0.4 else 1):
        names = list(recipe["settings"])
        name = generator.choices(names, [weight(name, memory) for name in names])[0]
        recipe, sentence = change(recipe, name, generator, near=generator.random() < 0.6)
        sentences.append(sentence)
    return recipe, " ".join(sentences), None


def weight(name, memory):
    """2 per earlier change of this setting that beat the best time so far, less for those that did not."""
    won = lost = 0
    best = None
    for entry in memory:
        if entry["value"] is None:
            continue
        better = entry["status"] == "keep" and (best is None or entry["value"] < best)
        if name in CHANGED.findall(entry["hypothesis"]):
            won, lost = won + better, lost + (not better)
        best = entry["value"] if better else best
    return (1 + 2 * won) / (1 + 0.5 * lost)


def debug(recipe, failure, generator):
    """A refused name is written in another way; a program that took too long gets fewer epochs; else a fresh start."""
    output = failure.get("output") or ""
    used = [way for way in recipe["spelling"].values() if re.search(rf"\b{re.escape(way)}\b(?!\w)", output) or f"'{way.split('.')[1]}'" in output]
    if used and "AttributeError" in output:
        recipe["spelling"] = draw_spellings(generator, without=used)
        return recipe, f"Repair: {', '.join(used)} is refused, write it in another way; else as before: {describe(recipe)}.", None
    if failure.get("status") in ("timed_out", "over_budget") and recipe["settings"].get("epochs") not in (None, SETTINGS["network"]["epochs"][-1]):
        epochs = SETTINGS["network"]["epochs"]
        recipe["settings"]["epochs"] = epochs[epochs.index(recipe["settings"]["epochs"]) + 1]
        return recipe, f"Repair: it took too long, train for fewer epochs; else as before: {describe(recipe)}.", None
    recipe = draw_recipe(generator)
    return recipe, f"Draft: {describe(recipe)}.", None


if __name__ == "__main__":
    answer_with(research)
