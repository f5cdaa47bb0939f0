"""Two digits in one image: images instead of text, and the weighters of all the papers.

    python examples/multimnist.py FOLDER --weighter alpha-vil --target top-left --seed 0

FOLDER contains MNIST in its own format (t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz).
Two digits are overlaid, the first shifted to the top left and the second to the bottom right. The
two tasks are to classify the first and to classify the second (αVIL, section 4.1). Images for
training, dev and test show different digits of the 10,000. A step has 256 rows of each task, as in
the paper.
"""

import argparse
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import FitResult, OptimizerSettings, TensorTask, fit

TASKS = ("top-left", "bottom-right")
SIZES = {"train": 8000, "dev": 1000, "test": 1000}
BATCH = 256

LONG_ROUNDS = {"alpha-vil": 2, "diw": 3, "forkmerge": 2, "tapweight": 2}
"""Weighters whose rounds train for an epoch and more, and the steps of their runs, in those of
other weighters. αVIL trains each task for an epoch; DIW then both together, up to ten times; the
two others are given rounds of this kind below."""

EPOCHS_LONG = {
    "forkmerge": ("steps",),
    "tapweight": ("pretraining_steps", "fine_tuning_steps"),
    "dwa": ("every",),
}
"""Options that are given the steps of an epoch instead of their default, a few steps."""


class Encoder(nn.Module):
    """The shared body: two convolutions of 10 and 20 filters of 5 × 5, and 320 → 50."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 10, 5)
        self.second = nn.Conv2d(10, 20, 5)
        self.linear = nn.Linear(320, 50)

    def forward(self, images: Tensor) -> Tensor:
        """Features ``[B, 50]`` of images ``[B, 1, 28, 28]``."""
        hidden = functional.relu(functional.max_pool2d(self.first(images), 2))
        hidden = functional.relu(functional.max_pool2d(self.second(hidden), 2))
        return functional.relu(self.linear(hidden.flatten(1)))


def read_mnist(folder: Path) -> tuple[Tensor, Tensor]:
    """Images ``[N, 28, 28]`` in [0, 1] and labels ``[N]``."""
    images = gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())
    pixels = torch.frombuffer(bytearray(images[16:]), dtype=torch.uint8)
    digits = torch.frombuffer(bytearray(labels[8:]), dtype=torch.uint8)
    return pixels.view(-1, 28, 28).float() / 255, digits.long()


def overlay(images: Tensor, labels: Tensor, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Overlay every image on another one, drawn by ``seed``: ``[N, 1, 28, 28]`` and both labels.

    Each is shifted by four pixels on a 36 × 36 canvas, the brighter pixels win, and the canvas is
    resized to 28 × 28 (Sabour et al., 2017; Sener and Koltun, 2018).
    """
    partner = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    first = functional.pad(images, (0, 8, 0, 8))
    second = functional.pad(images[partner], (8, 0, 8, 0))
    canvas = torch.maximum(first, second).unsqueeze(1)
    small = functional.interpolate(canvas, size=28, mode="bilinear", antialias=True)
    return small, {"top-left": labels, "bottom-right": labels[partner]}


def multi_mnist(
    folder: Path, seed: int, sizes: Mapping[str, int]
) -> dict[str, tuple[Tensor, dict[str, Tensor]]]:
    """Train, dev and test images, which share no digit image with each other."""
    images, labels = read_mnist(folder)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    parts, start = {}, 0
    for i, (name, size) in enumerate(sizes.items()):
        chosen = order[start : start + size]
        parts[name] = overlay(images[chosen], labels[chosen], seed * 3 + i)
        start += size
    return parts


def train(
    folder: Path,
    weighter: str,
    target: str,
    *,
    seed: int = 0,
    epochs: int = 100,
    sizes: Mapping[str, int] = SIZES,
) -> tuple[FitResult, float, float]:
    """Train for ``target``; returns the result, and its dev and test accuracy."""
    parts = multi_mnist(folder, seed, sizes)
    torch.manual_seed(seed)
    body = Encoder()
    heads = {name: nn.Linear(50, 10) for name in TASKS}

    def loss(logits: Tensor, digits: Tensor) -> Tensor:
        return functional.cross_entropy(logits, digits, reduction="none")

    def task(name: str, part: str) -> TensorTask:
        images, labels = parts[part]
        return TensorTask(name, heads[name], {"images": images}, labels[name], loss)

    @torch.no_grad()
    def score(part: str) -> Mapping[str, float]:
        images, labels = parts[part]
        predicted = heads[target](body(images)).argmax(dim=1)
        return {"accuracy": (predicted == labels[target]).float().mean().item()}

    (helper,) = (name for name in TASKS if name != target)
    epoch = -(-sizes["train"] // BATCH)
    result = fit(
        body,
        task(target, "train"),
        [task(helper, "train")],
        dev=task(target, "dev"),
        evaluate=lambda: score("dev"),
        weighter="static" if weighter == "multitask" else weighter,
        options=dict.fromkeys(EPOCHS_LONG.get(weighter, ()), epoch),
        steps=epochs * epoch * LONG_ROUNDS.get(weighter, 1),
        eval_every=1 if weighter in LONG_ROUNDS else epoch,
        patience=epochs,
        batch_size=BATCH,
        dev_batch_size=BATCH,
        aux_batch_size=BATCH,
        optimizer=OptimizerSettings(
            lr=0.05,
            head_lr=0.05,
            weight_decay=0.0,
            warmup=0.0,
            optimizer="sgd",
            momentum=0.9,
            schedule="constant",
        ),
        seed=seed,
    )
    return result, result.best_score, score("test")["accuracy"]


def main() -> None:
    """Train once and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weighter", default="alpha-vil")
    parser.add_argument("--target", choices=TASKS, default="top-left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=100)
    given = parser.parse_args()
    result, dev, test = train(
        given.folder, given.weighter, given.target, seed=given.seed, epochs=given.epochs
    )
    line = {
        "weighter": given.weighter,
        "target": given.target,
        "seed": given.seed,
        "dev": dev,
        "test": test,
        "best_step": result.best_step,
        "steps": result.steps,
        "weights": dict(result.weights),
        "alpha": [record["alpha"] for record in result.history if "alpha" in record],
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
