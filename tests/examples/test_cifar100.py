"""CIFAR-100's experiment as an example: its three kinds of files, and its methods on digits."""

import pickle
import runpy
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from aang_core import DataError

pytestmark = pytest.mark.release

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cifar100.py"))
NAMES = ("beaver", "fox", "lamp", "skunk")


def official(path: Path, parts: dict[str, Any]) -> Path:
    """An archive as the authors of CIFAR-100 distribute it, of the pickled ``parts``."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in parts.items():
            packed = pickle.dumps(content, protocol=2).replace(b"numpy._core", b"numpy.core")
            member = tarfile.TarInfo(f"cifar-100-python/{name}")
            member.size = len(packed)
            archive.addfile(member, BytesIO(packed))
    return path


def rows(count: int, seed: int) -> dict[str, Any]:
    """Random images, a row of red, green and blue each, of the four classes in turn."""
    data = np.random.default_rng(seed).integers(256, size=(count, 3072), dtype=np.uint8)
    labels = [i % len(NAMES) for i in range(count)]
    return {"data": data, "fine_labels": labels, "coarse_labels": [0] * count}


def test_the_archive_and_a_folder_of_the_same_images_are_read_alike(tmp_path: Path) -> None:
    """The archive unpacked, too, as torchvision leaves it."""
    parts = {"meta": {"fine_label_names": list(NAMES)}, "train": rows(16, 0), "test": rows(8, 1)}
    archive = official(tmp_path / "cifar-100-python.tar.gz", parts)
    for part in ("train", "test"):
        for i, flat in enumerate(parts[part]["data"]):
            file = tmp_path / "folder" / part / NAMES[i % 4] / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(flat.reshape(3, 32, 32).transpose(1, 2, 0)).save(file)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")

    def sorted_parts(source: Path) -> dict[str, list[tuple[int, bytes]]]:
        made = EXAMPLE["make_parts"](
            EXAMPLE["read_images"](str(source)), ("skunk", "fox"), 0, {"train": 6, "dev": 2}
        )
        assert [len(made[part][1]) for part in ("train", "dev", "auxiliary", "test")] == [
            6,
            2,
            8,
            4,
        ]
        both = torch.cat([made["train"][0], made["dev"][0]])
        made["own"] = both, torch.cat([made["train"][1], made["dev"][1]])
        return {
            part: sorted(
                zip(made[part][1].tolist(), map(bytes, made[part][0].numpy()), strict=True)
            )
            for part in ("own", "auxiliary", "test")
        }

    known = sorted_parts(archive)
    # The end task's classes have the order in which they are named, the others the alphabet's.
    skunks = sorted(flat.tobytes() for flat in parts["train"]["data"][3::4])
    assert [image for label, image in known["own"] if label == 0] == skunks
    assert sorted_parts(tmp_path / "cifar-100-python") == known
    assert sorted_parts(tmp_path / "folder") == known


def test_code_in_an_archive_is_not_run(tmp_path: Path) -> None:
    archive = official(tmp_path / "a.tar.gz", {"meta": Path("somewhere")})
    with pytest.raises(DataError, match=r"this one pathlib"):
        EXAMPLE["read_images"](str(archive))


def test_classes_that_no_image_has_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no image is of ten, twelve; name --classes among 1, 2"):
        EXAMPLE["make_parts"](EXAMPLE["read_images"]("digits"), ("twelve", "ten", "0"), 0)


@pytest.mark.parametrize("method", ["single-task", "pre-training", "static", "meta-tartan"])
def test_every_method_trains_on_digits(method: str) -> None:
    """Ten epochs, and better than chance, which is 0.2."""
    torch.set_num_threads(1)
    parts = EXAMPLE["make_parts"](EXAMPLE["read_images"]("digits"), tuple("13589"), 0)
    assert [len(parts[part][1]) for part in ("train", "dev")] == [200, 64]
    assert {tuple(images.shape[1:]) for images, _ in parts.values()} == {(3, 8, 8)}
    result, dev, test = EXAMPLE["train"](parts, method, epochs=10)
    assert result.steps == 40
    assert min(dev, test) > 0.4
    shared = method in ("static", "meta-tartan")
    assert (result.weights["auxiliary"] > 0) == shared
