"""The example programs, run as a user runs them."""

import ast
import gzip
import json
import os
import runpy
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from aang_core import DataError

pytestmark = pytest.mark.release

# Layers as small as these are fastest on one thread.
torch.set_num_threads(1)

EXAMPLES = Path(__file__).parents[2] / "examples"
MNIST = Path(__file__).parents[3] / "shared" / "data" / "mnist-t10k"


def test_plain_pytorch_is_short_and_runs() -> None:
    """Under 60 lines, and the helpers make the end task better."""
    program = EXAMPLES / "plain_pytorch.py"
    assert len(program.read_text(encoding="utf-8").splitlines()) < 60
    accuracy = {}
    for weighter in ("single-task", "static"):
        done = subprocess.run(
            [sys.executable, program, weighter],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        accuracy[weighter] = float(done.stdout.split("accuracy ")[1].split(",")[0])
    assert accuracy["static"] > accuracy["single-task"] > 0.7


@pytest.mark.parametrize("name", ["plain_pytorch.py", "multimnist.py", "cifar100.py"])
def test_examples_need_public_names_only(name: str) -> None:
    """What they import of the core is in its index."""
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [m for m in modules if m and m.startswith("aang")] == ["aang_core"]


@pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST's test images are not at hand")
@pytest.mark.parametrize(
    "weighter",
    [
        *("single-task", "multitask", "meta-tartan", "alpha-vil", "diw", "pcgrad", "cagrad"),
        *("uncertainty", "gradnorm", "dwa", "forkmerge", "tapweight"),
    ],
)
def test_multimnist_trains_under_every_weighter(weighter: str) -> None:
    """Two epochs of 512 images of digits that train, dev and test do not share."""
    example = runpy.run_path(str(EXAMPLES / "multimnist.py"))
    sizes = {"train": 512, "dev": 128, "test": 128}
    result, dev, test = example["train"](
        MNIST, weighter, "bottom-right", seed=1, epochs=2, sizes=sizes
    )
    assert result.steps >= 4
    assert sum(result.weights.values()) == pytest.approx(1.0)
    assert 0 <= dev <= 1
    assert 0 <= test <= 1
    if weighter == "alpha-vil":
        assert all(set(r["alpha"]) == {"top-left", "bottom-right"} for r in result.history)
    json.dumps(result.history)


@pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST's test images are not at hand")
def test_multimnist_shares_no_digit_between_parts() -> None:
    """And a seed fixes what is drawn."""
    example = runpy.run_path(str(EXAMPLES / "multimnist.py"))
    sizes = {"train": 300, "dev": 100, "test": 100}
    first, again, other = (example["multi_mnist"](MNIST, seed, sizes) for seed in (0, 0, 1))
    assert [len(images) for images, _ in first.values()] == [300, 100, 100]
    assert all((first[p][0] == again[p][0]).all() for p in sizes)
    assert not (first["train"][0] == other["train"][0]).all()
    assert first["train"][0].shape[1:] == (1, 28, 28)


def idx(file: Path, values: np.ndarray, *, packed: bool) -> None:
    """An IDX file as MNIST's authors distribute it."""
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    content = header + values.tobytes()
    if packed:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(content))
    else:
        file.write_bytes(content)


def test_multimnist_takes_dev_from_the_training_files(tmp_path: Path) -> None:
    """And test from the test files; each file plain or packed. A cut one is refused."""
    example = runpy.run_path(str(EXAMPLES / "multimnist.py"))
    for part, numbers in (("train", range(40)), ("t10k", range(100, 112))):
        images = np.random.default_rng(0).integers(256, size=(len(numbers), 28, 28), dtype=np.uint8)
        idx(tmp_path / f"{part}-images-idx3-ubyte", images, packed=part == "t10k")
        labels = np.array(numbers, dtype=np.uint8)  # each image has its own, to be known by it
        idx(tmp_path / f"{part}-labels-idx1-ubyte", labels, packed=part == "train")
    parts = example["multi_mnist"](tmp_path, 0, {"train": 30, "dev": 10, "test": 12})
    shown = {part: set(labels["top-left"].tolist()) for part, (_, labels) in parts.items()}
    assert shown["train"] | shown["dev"] == set(range(40))
    assert not shown["train"] & shown["dev"]
    assert shown["test"] == set(range(100, 112))
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte is not an IDX file of bytes, or"):
        example["multi_mnist"](tmp_path, 0)
