"""The control of the reference researcher: the same changes through the same renderer, drawn uniformly, looking at nothing.

    python3 playbook/random_moves.py < question.json > answer.json
"""

import sys

sys.dont_write_bytecode = True

from programs import PROGRAM, answer_with, change, describe, draw_recipe, read_recipe


def research(question, generator):
    recipe = read_recipe(question["view"]["base"].get("files", {}).get(PROGRAM, ""))
    if question["role"] == "draft" or recipe is None:
        recipe = draw_recipe(generator)
        return recipe, f"Draft: {describe(recipe)}.", None
    recipe, sentence = change(recipe, generator.choice(list(recipe["settings"])), generator, near=False)
    return recipe, sentence, None


if __name__ == "__main__":
    answer_with(research)
