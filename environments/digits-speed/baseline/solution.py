"""One hidden layer, trained by momentum on shifted images; the weights of the best epoch are kept."""

import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])
SEED = int(os.environ["TRIALIST_SEED"])

WIDTH = 128
EPOCHS = 240
BATCH = 50
RATE = 0.1
MOMENTUM = 0.9
VALIDATION = 97

generator = np.random.default_rng(SEED)
images = np.load(DATA / "train_images.npy").astype(np.float64) / 16
labels = np.load(DATA / "train_labels.npy").astype(int)
test = np.load(DATA / "test_images.npy").astype(np.float64) / 16

order = generator.permutation(len(images))
held, fit = order[:VALIDATION], order[VALIDATION:]
wanted = np.eye(10)[labels]


def shifted(batch):
    """Every image moved by up to one pixel each way."""
    padded = np.pad(batch.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = generator.integers(0, 3, size=(2, len(batch)))
    rows = down[:, None, None] + np.arange(8)[None, :, None]
    columns = right[:, None, None] + np.arange(8)[None, None, :]
    return padded[np.arange(len(batch))[:, None, None], rows, columns].reshape(-1, 64)


def forward(batch):
    hidden = np.maximum(batch @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


weights = [
    generator.normal(0, np.sqrt(2 / 64), (64, WIDTH)),
    np.zeros(WIDTH),
    generator.normal(0, np.sqrt(2 / WIDTH), (WIDTH, 10)),
    np.zeros(10),
]
speed = [np.zeros_like(weight) for weight in weights]
best, best_hits = weights, -1

for epoch in range(EPOCHS):
    rate = RATE * (1 - epoch / EPOCHS)
    rows = generator.permutation(fit)
    moved = shifted(images[rows])
    for start in range(0, len(rows), BATCH):
        chosen = rows[start : start + BATCH]
        batch = moved[start : start + BATCH]
        hidden, scores = forward(batch)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = (raised / raised.sum(axis=1, keepdims=True) - wanted[chosen]) / len(chosen)
        back = (error @ weights[2].T) * (hidden > 0)
        gradients = [batch.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        for number, gradient in enumerate(gradients):
            speed[number] = MOMENTUM * speed[number] - rate * gradient
            weights[number] = weights[number] + speed[number]
    hits = np.mean(forward(images[held])[1].argmax(axis=1) == labels[held])
    if hits >= best_hits:
        best, best_hits = list(weights), hits

weights = best
digits = forward(test)[1].argmax(axis=1)
with open(OUTPUT / "predictions.csv", "w") as file:
    file.write("id,digit\n")
    file.writelines(f"{number},{digit}\n" for number, digit in enumerate(digits))
