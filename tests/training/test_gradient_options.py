"""Options of the gradient engines, through whole trainings."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.support.gradients import loss_scale
from tests.training.conftest import Aang

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
def undrawn(train_options: list[object], tmp_path: Path) -> list[object]:
    """Arguments of a training whose objectives draw nothing and whose model drops nothing out."""
    (tmp_path / "every_third.py").write_text(EVERY_THIRD, encoding="utf-8")
    (tmp_path / "space.yaml").write_text(SPACE, encoding="utf-8")
    return [
        *("--plugin", tmp_path / "every_third.py", "train", *train_options),
        *("--space", tmp_path / "space.yaml", "--dropout", 0.0, "--steps", 1),
        # Which is fitted in the first step already.
        *("--dev-head", "own-rows"),
    ]


def weights_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "weights.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_engines_measure_alike(
    aang: Aang, undrawn: list[object], tmp_path: Path, precision: str
) -> None:
    """From the same state and rows both engines measure the same cosines."""
    cosines = {}
    for engine in ("stream", "packed"):
        run = tmp_path / engine
        outcome = aang(*undrawn, "--gradients", engine, "--precision", precision, "--out", run)
        assert outcome.status == 0, outcome.err
        cosines[engine] = weights_of(run)[0]["cosines"]
    tolerance = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}[precision]
    assert len(cosines["stream"]) == 4
    assert cosines["packed"] == pytest.approx(cosines["stream"], abs=tolerance)


@pytest.mark.parametrize("engine", ["stream", "packed"])
def test_micro_batches_leave_the_step_as_it_is(
    aang: Aang, undrawn: list[object], tmp_path: Path, engine: str
) -> None:
    """Rows in passes of three at most give the cosines of rows in larger ones."""
    cosines = []
    for size in ([], ["--micro-batch-size", 3]):
        run = tmp_path / f"run{len(size)}"
        outcome = aang(*undrawn, "--gradients", engine, *size, "--out", run)
        assert outcome.status == 0, outcome.err
        cosines.append(weights_of(run)[0]["cosines"])
    assert cosines[1] == pytest.approx(cosines[0], abs=1e-4)


@pytest.mark.full
def test_a_step_that_overflows_is_made_again(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scale that is too large is halved until the same rows do; the rest is as with a small one.

    Weights and model are those of a run that begins with the scale that is found, bit by bit.
    """
    scales = {}
    for first in (2.0**40, None):
        monkeypatch.setattr(loss_scale, "FIRST", first or scales[2.0**40])
        run = tmp_path / str(first)
        done = aang("train", *train_options, "--precision", "fp16", "--steps", 1, "--out", run)
        assert done.status == 0, done.err
        newest = max((run / "checkpoints").iterdir())
        scales[first] = json.loads((newest / "state.json").read_text())["scale"]["value"]
    assert scales[None] == scales[2.0**40] < 2.0**40
    one, two = (tmp_path / str(first) for first in scales)
    for name in ("weights.jsonl", "metrics.jsonl", "model/model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


# Inductor imports a module of torch that still uses torch.jit.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")
@pytest.mark.full
@pytest.mark.parametrize("weighter", ["factored", "alpha-vil"])
def test_compiled_kernels_compute_the_same(
    aang: Aang, undrawn: list[object], tmp_path: Path, weighter: str
) -> None:
    """Rounding aside; and the model that comes out is an ordinary one."""
    written = {}
    for option in ("--no-compile", "--compile"):
        run = tmp_path / option
        done = aang(*undrawn, option, "--weighter", weighter, "--steps", 2, "--out", run)
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


def test_meta_every_measures_some_steps_only(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Signals come in the first and every second step; in between weights stay."""
    options = ("--meta-every", 2, "--steps", 4, "--dev-head", "own-rows")
    outcome = aang("train", *train_options, *options, "--out", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    lines = weights_of(tmp_path / "run")
    assert ["cosines" in line for line in lines] == [True, False, True, False]
    assert lines[0]["weights"] == lines[1]["weights"] != lines[2]["weights"]


@pytest.mark.parametrize(("every", "measured"), [(1, [2, 3, 4, 5]), (2, [2, 4]), (3, [3])])
def test_nothing_is_measured_before_there_are_rows_to_fit_the_dev_head_to(
    aang: Aang, train_options: list[object], tmp_path: Path, every: int, measured: list[int]
) -> None:
    """The rows of two steps, whether those measure or not; weights stay until then."""
    options = ("--meta-every", every, "--steps", 6, "--out", tmp_path / "run")
    outcome = aang("train", *train_options, *options)
    assert outcome.status == 0, outcome.err
    lines = weights_of(tmp_path / "run")
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


@pytest.mark.full
def test_engines_remember_alike(aang: Aang, undrawn: list[object], tmp_path: Path) -> None:
    """Packed and stream fit the dev head to the same rows of earlier steps."""
    cosines = {}
    for engine in ("stream", "packed"):
        run = tmp_path / engine
        options = ("--gradients", engine, "--dev-head", "remembered", "--steps", 4, "--out", run)
        outcome = aang(*undrawn, *options)
        assert outcome.status == 0, outcome.err
        cosines[engine] = weights_of(run)[3]["cosines"]
    assert cosines["packed"] == pytest.approx(cosines["stream"], abs=1e-3)


@pytest.mark.full
def test_saving_memory_changes_nothing_but_memory(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Dropout included, bit by bit; of the activations less than half is kept for backward."""
    kept = {}
    for option in ("--no-save-memory", "--save-memory"):
        size = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal size
            size += tensor.nbytes
            return tensor

        run = tmp_path / option
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            done = aang("train", *train_options, option, "--steps", 2, "--out", run, "--quiet")
        assert done.status == 0, done.err
        kept[option] = size
    assert kept["--save-memory"] < kept["--no-save-memory"] / 2
    one, two = (tmp_path / option for option in kept)
    for name in ("weights.jsonl", "metrics.jsonl", "model/model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
