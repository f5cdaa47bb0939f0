"""Kinds of images that help each other: pre-training against end-task aware training.

    python examples/cifar100.py cifar-100-python.tar.gz --method meta-tartan --seed 0
    python examples/cifar100.py digits --classes 1 3 5 8 9

The first argument is CIFAR-100's official archive (its Python version, packed or unpacked), a
folder of images in train/CLASS/ and test/CLASS/ as torchvision's ImageFolder has them (needs
Pillow), or ``digits``, the small images that come with scikit-learn.

The end task is to tell five classes apart, by default CIFAR-100's medium-sized mammals; telling all
other classes apart is the one auxiliary task (TARTAN, appendix A.4, table 5). The table's methods
are ``pre-training``, on the auxiliary task, before fine-tuning on the end task; ``static``, both
tasks with equal weights (MT-TARTAN); and ``meta-tartan``. ``single-task`` and other weighters work,
too. The paper gives neither sizes nor rates; those here are of the code that its authors released.
That code has no pre-training: here it takes as many steps as the fine-tuning after it.
"""

import argparse
import json
import pickle
import tarfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import DataError, FitResult, OptimizerSettings, TensorTask, fit

MEDIUM_SIZED_MAMMALS = ("fox", "porcupine", "possum", "raccoon", "skunk")
ROWS = {"train": 200, "dev": 64}
"""Rows of the end task; its test rows, and the rows of the auxiliary task, are all there are."""

EPOCHS, BATCH = 30, 64
"""An epoch shows every training row of the end task about once, and as many auxiliary rows."""

ADAM = OptimizerSettings(
    lr=3e-4,
    head_lr=3e-4,
    weight_decay=0.0,
    betas=(0.9, 0.999),
    warmup=0.0,
    max_grad_norm=float("inf"),
    schedule="constant",
)

Images = tuple[Tensor, Sequence[str]]
"""uint8 ``[N, 3, H, W]``, and the name of each image's class."""


class Block(nn.Module):
    """Two 3 × 3 convolutions, each after batch normalisation and ReLU, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.convolutions = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            *(nn.BatchNorm2d(outputs), nn.ReLU(), nn.Dropout(dropout)),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        )
        same = inputs == outputs
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """``[B, outputs, H / stride, W / stride]`` of ``[B, inputs, H, W]``."""
        ready = self.before(hidden)
        shortcut = hidden if self.shortcut is None else self.shortcut(ready)
        return shortcut + self.convolutions(ready)


class WideResNet(nn.Module):
    """The shared body: a wide residual network, WRN-16-2 (Zagoruyko and Komodakis, 2016)."""

    features = 128

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1))
        self.register_buffer("deviation", torch.tensor([0.2023, 0.1994, 0.2010]).view(3, 1, 1))
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
        for inputs, outputs, stride in ((16, 32, 1), (32, 64, 2), (64, 128, 2)):
            layers.append(Block(inputs, outputs, stride, dropout))
            layers.append(Block(outputs, outputs, 1, dropout))
        pool = nn.AdaptiveAvgPool2d(1)
        self.layers = nn.Sequential(*layers, nn.BatchNorm2d(128), nn.ReLU(), pool, nn.Flatten())
        for module in self.layers.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Features ``[B, 128]`` of images uint8 ``[B, 3, H, W]``."""
        features: Tensor = self.layers((images / 255 - self.mean) / self.deviation)
        return features


class ArraysOnly(pickle.Unpickler):
    """Reads numpy arrays; a pickle could run any code otherwise."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.split(".")[0], name) not in {
            *(("numpy", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")),
            ("_codecs", "encode"),
        }:
            raise DataError(f"CIFAR-100's files hold arrays alone, and this one {module}.{name}")
        return super().find_class(module, name)


def read_cifar(path: Path) -> dict[str, Images]:
    """Read CIFAR-100's Python version, an archive or the folder in it."""
    content: dict[str, dict[str, Any]] = {}
    for name in ("meta", "train", "test"):
        if path.is_dir():
            packed = (path / name).read_bytes()
        else:
            with tarfile.open(path) as archive:
                packed = archive.extractfile(f"cifar-100-python/{name}").read()
        content[name] = ArraysOnly(BytesIO(packed), encoding="latin1").load()
    names = content["meta"]["fine_label_names"]
    return {
        part: (
            torch.from_numpy(content[part]["data"].reshape(-1, 3, 32, 32)),
            [names[label] for label in content[part]["fine_labels"]],
        )
        for part in ("train", "test")
    }


def read_folder(path: Path) -> dict[str, Images]:
    """Read the image files of train/CLASS/ and test/CLASS/, and resize them to 32 × 32."""
    from PIL import Image

    parts = {}
    for part in ("train", "test"):
        files = sorted(file for file in (path / part).glob("*/*") if file.is_file())
        if not files:
            raise DataError(f"{path / part}: there are no images in folders of classes")
        arrays = []
        for file in files:
            with Image.open(file) as image:
                arrays.append(np.asarray(image.convert("RGB").resize((32, 32))))
        images = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2).contiguous()
        parts[part] = images, [file.parent.name for file in files]
    return parts


def read_digits() -> dict[str, Images]:
    """Read scikit-learn's 1,797 digits of 8 × 8 pixels; the last fifth are the test images."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.from_numpy((digits.images * 15).astype(np.uint8))
    images = images.unsqueeze(1).expand(-1, 3, -1, -1)
    names, cut = [str(label) for label in digits.target], len(images) * 4 // 5
    return {"train": (images[:cut], names[:cut]), "test": (images[cut:], names[cut:])}


def read_images(source: str) -> dict[str, Images]:
    """The parts ``train`` and ``test`` of a source, as the header of this file describes it."""
    path = Path(source)
    if source == "digits":
        return read_digits()
    return read_folder(path) if (path / "train").is_dir() else read_cifar(path)


def make_parts(
    images: Mapping[str, Images], classes: Sequence[str], seed: int, rows: Mapping[str, int] = ROWS
) -> dict[str, tuple[Tensor, Tensor]]:
    """Images and labels of the end task's train, dev and test, and of the auxiliary task.

    Raises:
        DataError: a class is missing, or has too few images together with the others.
    """
    pixels, names = images["train"]
    others = sorted(set(names) - set(classes))
    if missing := sorted(set(classes) - set(names)):
        raise DataError(
            f"no image is of {', '.join(missing)}; name --classes among {', '.join(others)}"
        )
    known = [*classes, *others]
    labels = torch.tensor([known.index(name) for name in names])
    own = torch.nonzero(labels < len(classes)).squeeze(1)
    own = own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))]
    if len(own) < sum(rows.values()):
        raise DataError(f"{len(own)} images are of these classes; {sum(rows.values())} are needed")
    parts, start = {}, 0
    for part, size in rows.items():
        chosen = own[start : start + size]
        parts[part], start = (pixels[chosen], labels[chosen]), start + size
    rest = labels >= len(classes)
    parts["auxiliary"] = pixels[rest], labels[rest] - len(classes)
    pixels, names = images["test"]
    labels = torch.tensor([known.index(name) for name in names])
    parts["test"] = pixels[labels < len(classes)], labels[labels < len(classes)]
    return parts


def train(
    parts: Mapping[str, tuple[Tensor, Tensor]], method: str, *, seed: int = 0, epochs: int = EPOCHS
) -> tuple[FitResult, float, float]:
    """Train by ``method``; returns the result, and its dev and test accuracy."""
    torch.manual_seed(seed)
    body = WideResNet()
    ways = {part: int(parts[part][1].max()) + 1 for part in ("train", "auxiliary")}
    heads = {part: nn.Linear(WideResNet.features, ways[part]) for part in ways}

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits, labels, reduction="none")

    def task(part: str) -> TensorTask:
        images, labels = parts[part]
        name = "auxiliary" if part == "auxiliary" else "end-task"
        return TensorTask(name, heads.get(part, heads["train"]), {"images": images}, labels, loss)

    @torch.no_grad()
    def score(part: str, rows: int | None = None) -> dict[str, float]:
        body.eval()
        images, labels = (value[:rows] for value in parts[part])
        head = heads.get(part, heads["train"])
        right = sum(
            int((head(body(some)).argmax(dim=1) == wanted).sum())
            for some, wanted in zip(images.split(500), labels.split(500), strict=True)
        )
        return {"accuracy": right / len(labels)}

    epoch = -(-len(parts["train"][1]) // BATCH)
    steps = epochs * epoch
    same = {
        "steps": steps,
        "patience": epochs,
        "batch_size": BATCH,
        "dev_batch_size": BATCH,
        "aux_batch_size": BATCH,
        "optimizer": ADAM,
        "seed": seed,
    }
    if method == "pre-training":
        # Scored at its start and its end alone, so nothing of it is selected.
        fit(
            *(body, task("auxiliary"), []),
            dev=task("auxiliary"),
            evaluate=lambda: score("auxiliary", 1000),
            weighter="single-task",
            eval_every=steps,
            **same,
        )
    result = fit(
        *(body, task("train"), [task("auxiliary")]),
        dev=task("dev"),
        evaluate=lambda: score("dev"),
        weighter="single-task" if method == "pre-training" else method,
        options={"lr": 0.05} if method == "meta-tartan" else {},
        eval_every=epoch,
        **same,
    )
    return result, result.best_score, score("test")["accuracy"]


def main() -> None:
    """Train once and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", help="CIFAR-100's archive, a folder of images, or digits")
    parser.add_argument("--method", default="meta-tartan")
    parser.add_argument("--classes", nargs="+", default=MEDIUM_SIZED_MAMMALS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    given = parser.parse_args()
    parts = make_parts(read_images(given.images), given.classes, given.seed)
    result, dev, test = train(parts, given.method, seed=given.seed, epochs=given.epochs)
    line = {
        "method": given.method,
        "seed": given.seed,
        "dev": dev,
        "test": test,
        "best_step": result.best_step,
        "steps": result.steps,
        "weights": dict(result.weights),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
