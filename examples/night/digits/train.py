"""Trains a small network on handwritten digits, as config.toml says; prints the loss on a third that it has not seen."""

import os
import tomllib

import numpy
import torch
from torch import nn

SEED = int(os.environ.get("TRIALIST_SEED", "0"))

with open("config.toml", "rb") as file:
    config = tomllib.load(file)

torch.manual_seed(SEED)
torch.set_num_threads(1)
data = numpy.load("data/digits.npz")
pixels, digit = torch.from_numpy(data["pixels"]), torch.from_numpy(data["digit"])
order = torch.randperm(len(digit))
training, test = order[:1200], order[1200:]

hidden, dropout = config["model"]["hidden"], config["model"]["dropout"]
network = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 10))
settings = config["training"]
optimizer = torch.optim.AdamW(network.parameters(), lr=settings["learning_rate"], weight_decay=settings["weight_decay"])

for epoch in range(settings["epochs"]):
    network.train()
    for batch in training[torch.randperm(len(training))].split(settings["batch"]):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(pixels[batch]), digit[batch]).backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        answer = network(pixels[test])
    loss = nn.functional.cross_entropy(answer, digit[test]).item()
    accuracy = (answer.argmax(1) == digit[test]).float().mean().item()
    print(f"epoch {epoch} val_loss: {loss:.4f} val_accuracy: {accuracy:.4f}")
