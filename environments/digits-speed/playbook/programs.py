"""Recipes for training fast, how they are drawn and changed, and the programs they stand for.

A recipe is one literal at the top of its program, from where it is read back. `spelling` is how two things are written
down that numpy has renamed: what comes to mind may be of an older version, and then the program fails.
"""

import ast
import copy
import json
import pprint
import random
import sys

PROGRAM = "solution.py"

#: Choices per setting and method, from slow to fast where there is an order.
SETTINGS = {
    "network": {
        "width": [256, 192, 128, 96, 64, 48, 32],
        "epochs": [240, 160, 120, 90, 60, 45, 30, 20, 12],
        "batch": [16, 25, 50, 80, 100, 160, 250],
        "rate": [0.02, 0.05, 0.1, 0.2, 0.3, 0.5],
        "momentum": [0.0, 0.8, 0.9, 0.95],
        "nesterov": [False, True],
        "schedule": ["linear", "constant", "cosine"],
        "shift": [True, False],
        "check_every": [1, 5, 20, 0],
        "precision": ["float64", "float32"],
        "threads": ["as set", "one"],
    },
    "least_squares": {"ridge": [0.01, 0.1, 1.0, 10.0], "squares": [True, False], "precision": ["float64", "float32"], "threads": ["as set", "one"]},
    "random_features": {"width": [2000, 1000, 600, 400, 250, 150], "ridge": [0.01, 0.1, 1.0, 10.0], "precision": ["float64", "float32"], "threads": ["as set", "one"]},
    "kernel": {"width_of_kernel": [1.0, 2.0, 3.0, 5.0], "ridge": [0.001, 0.01, 0.1, 1.0], "precision": ["float64", "float32"], "threads": ["as set", "one"]},
    "neighbours": {"k": [1, 3, 5], "precision": ["float64", "float32"], "threads": ["as set", "one"]},
}

#: Ways to write something, with how readily each comes to mind.
SPELLINGS = {"random integers": {"generator.integers": 8, "generator.randint": 1}, "float type": {"np.float64": 8, "np.float": 1}}

WHY = {
    "epochs": "fewer passes take less time, as long as the gate holds",
    "batch": "larger batches waste less time between numpy's calls",
    "precision": "single precision moves half the bytes",
    "check_every": "looking at held-aside rows costs time in every epoch",
    "shift": "shifting images costs time in every epoch",
    "width": "a narrower layer computes faster",
    "rate": "a better rate needs fewer epochs",
    "momentum": "momentum decides how far a step carries",
    "threads": "starting threads can cost more than they save on small matrices",
}

# As the baseline: where a draft starts from when it keeps the network.
BASELINE = {"width": 128, "epochs": 240, "batch": 50, "rate": 0.1, "momentum": 0.9, "nesterov": False, "schedule": "linear",
            "shift": True, "check_every": 1, "precision": "float64", "threads": "as set"}


def draw_spellings(generator, without=()):
    return {task: generator.choices([way for way in ways if way not in without], [weight for way, weight in ways.items() if way not in without])[0]
            for task, ways in SPELLINGS.items()}


def draw_recipe(generator):
    """A method with settings: the network near the baseline, others drawn whole."""
    method = generator.choices(list(SETTINGS), [6, 1, 1, 1, 1])[0]
    if method == "network":
        recipe = {"method": method, "settings": dict(BASELINE), "spelling": draw_spellings(generator)}
        for name in generator.sample(list(BASELINE), generator.randint(2, 4)):
            recipe["settings"][name] = generator.choice(SETTINGS[method][name])
        return recipe
    settings = {name: generator.choice(values) for name, values in SETTINGS[method].items()}
    return {"method": method, "settings": settings, "spelling": draw_spellings(generator)}


def change(recipe, name, generator, near):
    """Another value for one setting: a neighbour in its list, or any."""
    changed = copy.deepcopy(recipe)
    values, old = SETTINGS[recipe["method"]][name], recipe["settings"][name]
    place = values.index(old)
    others = [values[p] for p in (place - 1, place + 1) if 0 <= p < len(values)] if near else [value for value in values if value != old]
    changed["settings"][name] = generator.choice(others)
    why = f", since {WHY[name]}" if name in WHY else ""
    return changed, f"Change {name}: {old} to {changed['settings'][name]}{why}."


def describe(recipe):
    return recipe["method"].replace("_", " ") + " with " + ", ".join(f"{name} {value}" for name, value in recipe["settings"].items())


def read_recipe(program):
    """The recipe at the top of a program of ours; None for any other program."""
    try:
        for node in ast.parse(program).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "RECIPE":
                recipe = ast.literal_eval(node.value)
                known = SETTINGS[recipe["method"]]
                fits = set(recipe["settings"]) == set(known) and all(recipe["settings"][name] in known[name] for name in known)
                return recipe if fits and set(recipe["spelling"]) == set(SPELLINGS) else None
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, MemoryError, RecursionError):
        pass
    return None


def answer_with(researcher):
    """Reads one question, lets `researcher(question, generator)` give (recipe, hypothesis, change), writes the answer."""
    question = json.load(sys.stdin)
    if question.get("protocol") != "trialist/role@1":
        sys.exit("this researcher speaks trialist/role@1")
    generator = random.Random(f"{question['seed']}/{question.get('round', 1)}")
    recipe, hypothesis, expected = researcher(question, generator)
    answer = {"plan": {"hypothesis": hypothesis, "expected_change": expected}, "files": {PROGRAM: render(recipe, hypothesis)}}
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")


HEAD = '''\
DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])

generator = np.random.default_rng(int(os.environ["TRIALIST_SEED"]))
labels = np.load(DATA / "train_labels.npy").astype(int)
images = np.load(DATA / "train_images.npy").astype({type}) / 16
test = np.load(DATA / "test_images.npy").astype({type}) / 16
wanted = np.eye(10, dtype={type})[labels]
'''

TAIL = '''
with open(OUTPUT / "predictions.csv", "w") as file:
    file.write("id,digit\\n" + "".join(f"{number},{digit}\\n" for number, digit in enumerate(digits)))
'''

SHIFTED = '''

def shifted(batch):
    """Every image moved by up to one pixel each way."""
    padded = np.pad(batch.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = {integers}(0, 3, size=(2, len(batch)))
    rows = down[:, None, None] + np.arange(8)[None, :, None]
    columns = right[:, None, None] + np.arange(8)[None, None, :]
    return padded[np.arange(len(batch))[:, None, None], rows, columns].reshape(-1, 64)
'''

NETWORK = '''

def forward(batch):
    hidden = np.maximum(batch @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


weights = [
    generator.normal(0, np.sqrt(2 / 64), (64, {width})).astype({type}),
    np.zeros({width}, {type}),
    generator.normal(0, np.sqrt(2 / {width}), ({width}, 10)).astype({type}),
    np.zeros(10, {type}),
]
speed = [np.zeros_like(weight) for weight in weights]
{split}
for epoch in range({epochs}):
    rate = {rate}
    rows = generator.permutation(fit)
    moved = {moved}
    for start in range(0, len(rows), {batch}):
        chosen = rows[start : start + {batch}]
        batch = moved[start : start + {batch}]
        hidden, scores = forward(batch)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = (raised / raised.sum(axis=1, keepdims=True) - wanted[chosen]) / len(chosen)
        back = (error @ weights[2].T) * (hidden > 0)
        gradients = [batch.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        for weight, velocity, gradient in zip(weights, speed, gradients):
            velocity *= {momentum}
            velocity -= rate * gradient
            weight += {step}
{check}
digits = forward(test)[1].argmax(axis=1)
'''

CHECK = '''\
    if epoch % {every} == {every} - 1:
        hits = np.mean(forward(images[held])[1].argmax(axis=1) == labels[held])
        if hits >= best_hits:
            best, best_hits = [weight.copy() for weight in weights], hits
weights = best
'''

CLOSED = {
    "least_squares": '''
def expanded(batch):
    return np.hstack([batch, np.ones((len(batch), 1), batch.dtype){squares}])


inputs = expanded(images)
weights = np.linalg.solve(inputs.T @ inputs + {ridge} * np.eye(inputs.shape[1], dtype=inputs.dtype), inputs.T @ wanted)
digits = (expanded(test) @ weights).argmax(axis=1)
''',
    "random_features": '''
directions = generator.normal(0, 0.5, (64, {width})).astype(images.dtype)
offsets = generator.normal(0, 0.5, {width}).astype(images.dtype)
inputs = np.maximum(images @ directions + offsets, 0)
weights = np.linalg.solve(inputs.T @ inputs + {ridge} * np.eye({width}, dtype=inputs.dtype), inputs.T @ wanted)
digits = (np.maximum(test @ directions + offsets, 0) @ weights).argmax(axis=1)
''',
    "kernel": '''
def kernel(left, right):
    distances = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * left @ right.T
    return np.exp(-distances / (2 * {width_of_kernel} ** 2))


weights = np.linalg.solve(kernel(images, images) + {ridge} * np.eye(len(images), dtype=images.dtype), wanted)
digits = (kernel(test, images) @ weights).argmax(axis=1)
''',
    "neighbours": '''
distances = (images**2).sum(axis=1)[None, :] - 2 * test @ images.T
nearest = np.argpartition(distances, {k}, axis=1)[:, :{k}]
digits = wanted[nearest].sum(axis=1).argmax(axis=1)
''',
}


def render(recipe, hypothesis):
    """The program that carries out the recipe."""
    settings, spelling = recipe["settings"], recipe["spelling"]
    kind = spelling["float type"] if settings["precision"] == "float64" else "np.float32"
    threads = 'os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")\n\n' if settings["threads"] == "one" else ""
    title = hypothesis.replace("\\", "").replace('"""', "'''")
    literal = "RECIPE = " + pprint.pformat(recipe, width=110, sort_dicts=False).replace("\n", "\n" + " " * 9)
    head = f'"""{title}"""\n\nimport os\nfrom pathlib import Path\n\n{threads}import numpy as np\n\n{literal}\n\n' + HEAD.format(type=kind)
    if recipe["method"] == "network":
        return head + network(settings, spelling, kind) + TAIL
    squares = ", batch**2" if settings.get("squares") else ""
    return head + CLOSED[recipe["method"]].format(**{**settings, "squares": squares}) + TAIL


def network(settings, spelling, kind):
    """The part of a program that trains the network."""
    rate = {"linear": f"{settings['rate']} * (1 - epoch / {settings['epochs']})", "constant": f"{settings['rate']}",
            "cosine": f"{settings['rate']} * (1 + np.cos(np.pi * epoch / {settings['epochs']})) / 2"}[settings["schedule"]]
    checked = 0 < settings["check_every"] <= settings["epochs"]
    split = "order = generator.permutation(len(images))\nheld, fit = order[:97], order[97:]\nbest, best_hits = weights, -1\n" if checked else "fit = len(images)\n"
    body = NETWORK.format(
        width=settings["width"], type=kind, epochs=settings["epochs"], rate=rate, batch=settings["batch"], momentum=settings["momentum"], split=split,
        moved="shifted(images[rows])" if settings["shift"] else "images[rows]",
        step=f"{settings['momentum']} * velocity - rate * gradient" if settings["nesterov"] else "velocity",
        check=CHECK.format(every=settings["check_every"]) if checked else "",
    )
    return (SHIFTED.format(integers=spelling["random integers"]) if settings["shift"] else "") + body
