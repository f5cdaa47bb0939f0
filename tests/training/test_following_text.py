"""Tokens that move, sentences, and the end task's head, in both engines, processes, and resumed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from aang_core import CorruptedRows
from tests.core.engine_checks import assert_exact, assert_gradients
from tests.core.engine_steps import Step, oracle
from tests.support.gradients import (
    DistributedEngine,
    EndTaskHead,
    PackedEngine,
    Segment,
    StreamEngine,
)
from tests.support.runs import Assembly
from tests.support.training import ALONE, ModelState, load_checkpoint, save_checkpoint
from tests.training.following_text import exact_assembly, exact_trainer, write_sources
from tests.training.forks import Forks
from tests.training.launching import finished, lines
from tests.training.resuming import after_lines, everything, kill


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture
def assembly(options: dict[str, Any], own: Path) -> Assembly:
    return exact_assembly(options, own)[1]


def rows_of(batch_origin: object) -> CorruptedRows:
    assert isinstance(batch_origin, CorruptedRows)
    return batch_origin


def step_of(assembly: Assembly, part: int, parts: int) -> Step:
    """Every ``parts``-th objective on four of its rows, with the end task's and dev rows."""
    generator = torch.Generator().manual_seed(part)
    segments = [
        Segment(task, [task.batch(torch.tensor([0, 5, 17, 40 + i]), generator)], 0.1 * i)
        for i, task in enumerate(assembly.auxiliaries[part::parts])
    ]
    end = Segment(
        assembly.end_task, [assembly.end_task.batch(torch.tensor([1, 2, 30]), generator)], 0.5
    )
    dev = [assembly.meta.batch(torch.tensor([0, 7, 9]), generator)]
    return Step(assembly.model.body, end, segments, dev)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("part", range(4))
def test_engines_equal_autograd(assembly: Assembly, part: int) -> None:
    """Cosines, dots, norms and every ``.grad`` to 1e-9; the end task's head counts once."""
    step = step_of(assembly, part, parts=4)
    assembly.model.body.train()
    expected = oracle(step, step.end.task.head)
    for engine in (
        StreamEngine(step.body, EndTaskHead()),
        StreamEngine(step.body, EndTaskHead(), hold_end_task=False),
        PackedEngine(step.body, EndTaskHead()),
        PackedEngine(step.body, EndTaskHead(), max_rows=12),
        DistributedEngine(step.body, EndTaskHead(), "fp32", ALONE),
    ):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)
        step.clear()
        assert engine.step(step.end, step.auxiliaries, None) is None
        assert_gradients(step, expected.gradients, 1e-9)


def test_all_transforms_moved_tokens_in_these_steps(assembly: Assembly) -> None:
    """What the engines agree on includes rows of other lengths and orders."""
    lengths: dict[str, set[int]] = {}
    for batch, task in batches_of(assembly):
        rows = rows_of(batch)
        transform = task.factors["transform"]
        assert (rows.before is None) == (transform == "mask")
        change = rows.real.sum(dim=1) - before(rows).gt(0).sum(dim=1)
        lengths.setdefault(transform, set()).update(change.tolist())
    assert min(lengths["delete"]) < 0
    assert min(lengths["infill"]) < 0
    assert lengths["permute-sentences"] == lengths["mask"] == {0}


def batches_of(assembly: Assembly) -> Iterator[tuple[object, Any]]:
    for task in assembly.auxiliaries:
        rows = torch.arange(8)
        yield task.batch(rows, torch.Generator().manual_seed(1)).origin, task


def before(rows: CorruptedRows) -> Tensor:
    return rows.original if rows.before is None else rows.before.ids


def test_clean_views_are_the_rows_as_they_were(assembly: Assembly) -> None:
    """Whatever the transform does to the other view, and however long it makes it."""
    seen = 0
    for batch, task in batches_of(assembly):
        if task.factors["output"] != "consistency":
            continue
        rows = rows_of(batch)
        padded = task.rows.rows(torch.arange(8))
        width = padded.ids.shape[1]
        assert torch.equal(rows.corrupted[:8, :width] * padded.real, padded.ids * padded.real)
        assert torch.equal(rows.real[:8, :width], padded.real)
        assert not rows.real[:8, width:].any()
        assert not rows.selected[:8].any()
        assert not torch.equal(rows.origin[:8], rows.origin[8:]) or rows.before is None
        seen += 1
    assert seen == 8


def test_the_end_task_s_head_is_trained_once(options: dict[str, Any], own: Path) -> None:
    """The optimiser has each of its parameters once, and a checkpoint holds each once."""
    assembly, trainer = exact_trainer(options, own)
    optimizer = trainer.bench.optimization.optimizer
    trained = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(trained) == len(set(trained))
    assert {id(p) for p in assembly.model.classifier.parameters()} <= set(trained)
    bench = trainer.bench
    state = ModelState(bench.modules, bench.optimization, bench.frozen).state_dict()["module"]
    assert not [name for name in state if name.split("|")[0].endswith("/consistency")]


@pytest.mark.parametrize(
    "processes",
    [pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.release)],
)
def test_processes_train_what_one_trains(
    options: dict[str, Any], tmp_path: Path, processes: int
) -> None:
    """Cosines, weights, body and head, to 1e-9 in double precision."""
    more = {"weighter": "factored", "dev_head": "own-rows", "set": {"factored": {"n": 8}}}
    given = json.dumps({**options, **more}, default=str)
    outcomes = []
    for count in (1, processes):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / "options.json").write_text(given, encoding="utf-8")
        command = [sys.executable, "-m", "tests.training.following_text", str(folder)]
        if count > 1:
            launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(count)]
            command = [sys.executable, *launcher, "--standalone", *command[1:]]
        done: subprocess.CompletedProcess[str] = finished(command)
        assert done.returncode == 0, done.stderr
        outcomes += [load_file(path) for path in sorted(folder.glob("*.safetensors"))]
    one, *others = outcomes
    assert len(others) == processes
    assert len(one["cosines"]) == 3 * 9
    for other in others:
        for name, value in one.items():
            torch.testing.assert_close(other[name], value, rtol=0, atol=1e-9)


def test_it_goes_on_from_a_checkpoint(options: dict[str, Any], own: Path, tmp_path: Path) -> None:
    """What follows the text is drawn as if nothing had happened, and scored by the same head."""
    more = {"weighter": "factored", "dev_head": "own-rows", "set": {"factored": {"n": 8}}}
    _, trainer = exact_trainer({**options, **more}, own)
    _, again = exact_trainer({**options, **more, "seed": 99}, own)
    for step in range(4):
        if step == 2:
            save_checkpoint(tmp_path, trainer)
            load_checkpoint(tmp_path, again)
        if step >= 2:
            again.weighter.round(again.bench)
        trainer.weighter.round(trainer.bench)
    assert again.bench.last == trainer.bench.last
    assert again.weighter.state_dict() == trainer.weighter.state_dict()
    found = again.bench.modules
    for name, module in trainer.bench.modules.items():
        for key, value in module.state_dict().items():
            assert torch.equal(found[name].state_dict()[key], value), (name, key)


@pytest.mark.full
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    forks: Forks, train_options: list[object], tmp_path: Path
) -> None:
    plugin, space = write_sources(tmp_path)
    command = [
        *("--plugin", plugin, "train", *train_options, "--space", space, "--weighter", "factored"),
        *("--set", "factored.n=8", "--set", "consistency.threshold=0", "--precision", "fp32"),
        *("--steps", 10, "--eval-every", 5, "--checkpoint-every", 0, "--quiet"),
    ]
    whole = forks.aang(*command, "--out", tmp_path / "whole")
    assert whole.wait() == 0, whole.said
    run = tmp_path / "run"
    child = forks.aang(*command, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 4))
    kill(child)
    child = forks.aang("--plugin", plugin, "train", "--resume", run, "--quiet")
    assert child.wait() == 0, child.said
    assert everything(run) == everything(tmp_path / "whole")
    sampled = {name for line in lines(run / "weights.jsonl") for name in line["coefficients"]}
    parts = {part for name in sampled for part in name.split("/")}
    assert {"delete", "infill", "permute-sentences", "own-sentence", "consistency"} <= parts
