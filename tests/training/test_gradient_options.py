"""Options of the gradient engines, through whole trainings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.support.gradients import passes
from tests.training.conftest import Aang
from tests.training.trainers import build

EVERY_THIRD = '''
"""A transform that draws nothing, so that how rows are batched changes nothing."""

import torch

from aang_core import Corruption, hookimpl


class EveryThird:
    def __call__(self, ids, ordinary, vocabulary, generator):
        third = torch.arange(ids.shape[1]) % 3 == 0
        return Corruption(ids, ordinary & third)


@hookimpl
def aang_register_transforms(register):
    register("every-third", "selects every third token", EveryThird)
'''

SPACE = """
name: drawn-once
data: [task]
transform: [every-third]
representation: [bidirectional, left-to-right]
output: [end-task, denoise]
"""


@pytest.fixture
def sources(tmp_path: Path) -> tuple[Path, Path]:
    """The plug-in and the space, as files."""
    plugin, space = tmp_path / "every_third.py", tmp_path / "space.yaml"
    plugin.write_text(EVERY_THIRD, encoding="utf-8")
    space.write_text(SPACE, encoding="utf-8")
    return plugin, space


@pytest.fixture
def undrawn(
    options: dict[str, Any], sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """A training whose objectives draw nothing and whose model drops nothing out."""
    plugin, space = sources
    monkeypatch.setenv("AANG_LOAD_PLUGINS", str(plugin))
    # With this dev head, signals are measured in the first step already.
    own = {"dev_head": "own-rows", "weighter": "factored"}
    return {**options, **own, "space": str(space), "dropout": 0.0, "steps": 1}


@pytest.fixture
def on_td(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "space": "td", "weighter": "factored"}


def weights_of(options: Mapping[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The lines of ``weights.jsonl`` of a training."""
    _, _, trainer, _, records = build(options, **more)
    trainer.train()
    return records.weights


@dataclass(frozen=True)
class Left:
    """What a training leaves: its logs, and its model bit by bit."""

    logs: tuple[object, ...]
    model: Mapping[str, Tensor]
    scale: float


def left_by(options: Mapping[str, Any], **more: Any) -> Left:
    _, assembly, trainer, _, records = build(options, **more)
    trainer.train()
    model = assembly.model.classifier.state_dict()
    scale = trainer.state_dict().get("scale", {}).get("value", 1.0)
    return Left((records.weights, records.dev, records.losses), model, scale)


def assert_same(one: Left, other: Left) -> None:
    assert one.logs == other.logs
    assert one.model.keys() == other.model.keys()
    for name, value in one.model.items():
        assert torch.equal(other.model[name], value), name


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_engines_measure_alike(undrawn: dict[str, Any], precision: str) -> None:
    """From the same state and rows both engines measure the same cosines."""
    cosines = {
        engine: weights_of(undrawn, gradients=engine, precision=precision)[0]["cosines"]
        for engine in ("stream", "packed")
    }
    tolerance = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}[precision]
    assert len(cosines["stream"]) == 4
    assert cosines["packed"] == pytest.approx(cosines["stream"], abs=tolerance)


@pytest.mark.parametrize("engine", ["stream", "packed"])
def test_micro_batches_leave_the_step_as_it_is(undrawn: dict[str, Any], engine: str) -> None:
    """Rows in passes of three at most give the cosines of rows in larger ones."""
    cosines = [
        weights_of(undrawn, gradients=engine, **size)[0]["cosines"]
        for size in ({}, {"micro_batch_size": 3})
    ]
    assert cosines[1] == pytest.approx(cosines[0], abs=1e-4)


@pytest.mark.full
def test_a_step_that_overflows_is_made_again(
    on_td: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scale that is too large is halved until the same rows do; the rest is as with a small one.

    Weights and model are those of a run that begins with the scale that is found, bit by bit.
    """
    monkeypatch.setattr(passes, "FIRST", 2.0**40)
    large = left_by(on_td, precision="fp16", steps=1)
    monkeypatch.setattr(passes, "FIRST", large.scale)
    small = left_by(on_td, precision="fp16", steps=1)
    assert small.scale == large.scale < 2.0**40
    assert_same(small, large)


# Inductor imports a module of torch that still uses torch.jit.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")
@pytest.mark.full
@pytest.mark.parametrize("weighter", ["factored", "alpha-vil"])
def test_compiled_kernels_compute_the_same(
    aang: Aang,
    train_options: list[object],
    sources: tuple[Path, Path],
    tmp_path: Path,
    weighter: str,
) -> None:
    """Rounding aside; and the model that comes out is an ordinary one."""
    plugin, space = sources
    command = ["--plugin", plugin, "train", *train_options, "--space", space, "--dropout", 0.0]
    command += ["--dev-head", "own-rows", "--weighter", weighter, "--steps", 2]
    written = {}
    for option in ("--no-compile", "--compile"):
        run = tmp_path / option
        done = aang(*command, option, "--out", run)
        assert done.status == 0, done.err
        written[option] = load_file(run / "model" / "model.safetensors")
    compiled = written["--compile"]
    assert compiled.keys() == written["--no-compile"].keys()
    for name, tensor in written["--no-compile"].items():
        torch.testing.assert_close(compiled[name], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("option", ["--save-memory", "--compile"])
def test_packed_sees_every_module(
    aang: Aang, train_options: list[object], tmp_path: Path, option: str
) -> None:
    run = tmp_path / "run"
    done = aang("train", *train_options, option, "--gradients", "packed", "--out", run)
    assert done.status == 2
    assert "--gradients packed: " in done.err
    assert f"{option} " in done.err
    assert not run.exists()


def test_meta_every_measures_some_steps_only(on_td: dict[str, Any]) -> None:
    """Signals come in the first and every second step; in between weights stay."""
    lines = weights_of(on_td, meta_every=2, steps=4, dev_head="own-rows")
    assert ["cosines" in line for line in lines] == [True, False, True, False]
    assert lines[0]["weights"] == lines[1]["weights"] != lines[2]["weights"]


@pytest.mark.parametrize(("every", "measured"), [(1, [2, 3, 4, 5]), (2, [2, 4]), (3, [3])])
def test_nothing_is_measured_before_there_are_rows_to_fit_the_dev_head_to(
    on_td: dict[str, Any], every: int, measured: list[int]
) -> None:
    """The rows of two steps, whether those measure or not; weights stay until then."""
    lines = weights_of(on_td, meta_every=every, steps=6)
    assert [i for i, line in enumerate(lines) if "cosines" in line] == measured
    assert lines[0]["weights"] == lines[1]["weights"]


@pytest.mark.parametrize("option", ["--task-clip", "--dev-average"])
def test_packed_holds_no_whole_gradient(
    aang: Aang, train_options: list[object], tmp_path: Path, option: str
) -> None:
    run = tmp_path / "run"
    options = (option, 0.5, "--gradients", "packed", "--out", run)
    done = aang("train", *train_options, *options)
    assert done.status == 2
    assert f"but {option} needs all of it" in done.err
    assert not run.exists()


def test_engines_remember_alike(undrawn: dict[str, Any]) -> None:
    """Packed and stream fit the dev head to the same rows of earlier steps."""
    more = {"dev_head": "remembered", "steps": 4}
    cosines = {
        engine: weights_of(undrawn, gradients=engine, **more)[3]["cosines"]
        for engine in ("stream", "packed")
    }
    assert cosines["packed"] == pytest.approx(cosines["stream"], abs=1e-3)


def test_saving_memory_changes_nothing_but_memory(on_td: dict[str, Any]) -> None:
    """Dropout included, bit by bit; of the activations less than half is kept for backward."""
    kept, left = {}, {}
    for saves in (False, True):
        size = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal size
            size += tensor.nbytes
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            left[saves] = left_by(on_td, save_memory=saves, steps=2)
        kept[saves] = size
    assert kept[True] < kept[False] / 2
    assert_same(left[False], left[True])
