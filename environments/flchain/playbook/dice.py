"""Ranges of numbers and how they are drawn. The same ranges are written into programs that tune themselves."""

import math

#: How a value of a range is drawn: ("log", low, high), ("log_int", low, high), ("uniform", low, high),
#: ("choice", first, second, ...).


def rounded(value):
    """Three significant digits: enough for a setting, short enough to read."""
    return float(f"{value:.3g}")


def draw(generator, space):
    """One value of a range."""
    kind, *bounds = space
    if kind == "choice":
        return generator.choice(bounds)
    low, high = bounds
    if kind == "uniform":
        return rounded(generator.uniform(low, high))
    value = math.exp(generator.uniform(math.log(low), math.log(high)))
    return int(round(value)) if kind == "log_int" else rounded(value)


def step(generator, space, value):
    """A value near `value`: one clear step up or down, kept inside the range; another choice where there is no near."""
    kind, *bounds = space
    if kind == "choice":
        others = [choice for choice in bounds if choice != value]
        return generator.choice(others) if others else value
    low, high = bounds
    if kind == "uniform":
        moved = value + generator.choice([-1, 1]) * generator.uniform(0.1, 0.3) * (high - low)
        return rounded(min(max(moved, low), high))
    moved = min(max(value * generator.uniform(1.3, 2.2) ** generator.choice([-1, 1]), low), high)
    return int(round(moved)) if kind == "log_int" else rounded(moved)


def pick(generator, weights):
    """A key of `weights`, as often as its weight says."""
    names = list(weights)
    return generator.choices(names, [weights[name] for name in names])[0]


def some(generator, items, low, high):
    """From `low` to `high` different items, in the order of `items`."""
    count = min(generator.randint(low, high), len(items))
    chosen = set(generator.sample(range(len(items)), count))
    return [item for index, item in enumerate(items) if index in chosen]
