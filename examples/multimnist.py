"""Two digits in one image: images instead of text, and the weighters of all the papers.

    python examples/multimnist.py FOLDER --weighter alpha-vil --target top-left --seed 0

FOLDER contains MNIST in its own format (train-images-idx3-ubyte, train-labels-idx1-ubyte, and
t10k-… for the test set), each plain or with .gz. Two digits are overlaid, the first shifted to the
top left and the second to the bottom right. The two tasks are to classify the first and to classify
the second (αVIL, section 4.1). As in the paper, 10,000 of the 60,000 training digits are for dev,
and a step has 256 rows of each task. A folder without the training files is enough for a smaller
experiment: images for training, dev and test then show different digits of the 10,000.
"""

import argparse
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import DataError, FitResult, OptimizerSettings, TensorTask, fit

TASKS = ("top-left", "bottom-right")
FULL = {"train": 50_000, "dev": 10_000, "test": 10_000}
SMALL = {"train": 8000, "dev": 1000, "test": 1000}
"""Images of each part, with MNIST's training files and without them."""

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


def read_idx(file: Path) -> Tensor:
    """The bytes of an IDX file, plain or with .gz, in their shape.

    Raises:
        DataError: it is not such a file, or was cut.
    """
    packed = file.with_name(f"{file.name}.gz")
    content = file.read_bytes() if file.exists() else gzip.decompress(packed.read_bytes())
    header = 4 * (1 + int.from_bytes(content[3:4]))
    shape = np.frombuffer(content[4:header], ">i4")
    if content[:3] != b"\0\0\x08" or len(content) != header + shape.prod():
        raise DataError(f"{file} is not an IDX file of bytes, or a part of one; download it again")
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy())


def read_mnist(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Images ``[N, 28, 28]`` in [0, 1] and labels ``[N]`` of the part ``train`` or ``t10k``."""
    pixels = read_idx(folder / f"{part}-images-idx3-ubyte")
    return pixels.float() / 255, read_idx(folder / f"{part}-labels-idx1-ubyte").long()


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
    folder: Path, seed: int, sizes: Mapping[str, int] | None = None
) -> dict[str, tuple[Tensor, dict[str, Tensor]]]:
    """Train, dev and test images, which share no digit image with each other."""
    full = any(folder.glob("train-images-idx3-ubyte*"))
    digits = {file: read_mnist(folder, file) for file in ("train", "t10k")[not full :]}
    generator = torch.Generator().manual_seed(seed)
    orders = {
        file: torch.randperm(len(labels), generator=generator)
        for file, (_, labels) in digits.items()
    }
    parts = {}
    for i, (name, size) in enumerate((sizes or (FULL if full else SMALL)).items()):
        file = "train" if full and name != "test" else "t10k"
        chosen, orders[file] = orders[file][:size], orders[file][size:]
        images, labels = digits[file]
        parts[name] = overlay(images[chosen], labels[chosen], seed * 3 + i)
    return parts


def train(
    folder: Path,
    weighter: str,
    target: str,
    *,
    seed: int = 0,
    epochs: int = 100,
    sizes: Mapping[str, int] | None = None,
) -> tuple[FitResult, float, float]:
    """Train for ``target``; returns the result, and its dev and test accuracy.

    Without ``sizes`` of the parts, they are those of the folder.
    """
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
    epoch = -(-len(parts["train"][0]) // BATCH)
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
