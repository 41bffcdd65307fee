"""The control of the reference researcher: the same moves through the same renderer, drawn uniformly, looking at nothing.

    python3 playbook/random_moves.py < question.json > answer.json

It takes the base's recipe, because a move needs something to move, and looks neither at values nor at the memory nor at
a traceback. A failed program is followed by a random move on it, like any other.
"""

import sys

sys.dont_write_bytecode = True

from exchange import answer_with, base_recipe
from models import SPACES
from moves import MOVES, describe, make
from recipe import draw_recipe
from render import render


def research(question, generator):
    """(program, hypothesis, no expectation)."""
    recipe = None if question["role"] == "draft" else base_recipe(question)
    if recipe is None:
        kinds = generator.sample(list(SPACES), generator.choice([1, 1, 2]))
        recipe = draw_recipe(generator, kinds)
        hypothesis = f"Draft: {describe(recipe)}."
    else:
        moved = None
        while moved is None:
            moved = make(generator.choice(list(MOVES)), recipe, generator)
        recipe, hypothesis = moved
    return render(recipe, hypothesis), hypothesis, None


if __name__ == "__main__":
    answer_with(research)
