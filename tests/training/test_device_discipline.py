"""A step on an accelerator: every tensor is on it, and the host waits for it once."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from aang_core import load_plugins
from benchmarks.small_kinds import KINDS
from tests.support.runs import (
    Assembly,
    assemble,
    build_trainer,
    prepare_sources,
    resolve_config,
)
from tests.support.training import Trainer, load_checkpoint, save_checkpoint
from tests.training.pretend_device import DEVICE, Elsewhere, pretend_device

CPU = torch.device("cpu")
STEP = "step.py"
"""Where a step asks for its losses, norms and signals, all at once."""
TRIAL = "trials.py"
"""Where a trial asks which parameters have changed."""
SCORE = "prediction.py"
"""Where an evaluation asks for all logits, at its end."""

MORE = """\
name: more
summary: primitives that td and its relatives lack
data: [task, out-of-domain]
transform: [replace, delete, permute-sentences, infill]
representation: [bidirectional, left-to-right]
output: [tf-idf, next-token, real-synthetic, pseudo-label]
"""


@pytest.fixture
def exact(options: dict[str, Any]) -> dict[str, Any]:
    """A training that computes the same on every device, where other units would be dropped."""
    # By itself, an accelerator would take the packed engine.
    return {**options, "dropout": 0.0, "gradients": "stream", "space": "x+y+z"}


def assembled(options: Mapping[str, Any]) -> Assembly:
    config = resolve_config({}, options)
    torch.manual_seed(config.seed)
    return assemble(prepare_sources(config, load_plugins().registry))


def rounds(trainer: Trainer, count: int) -> list[dict[str, float]]:
    """The losses of some rounds."""
    found = []
    for _ in range(count):
        trainer.bench.begin_round()
        trainer.weighter.round(trainer.bench)
        found.append(dict(trainer.bench.losses.means()))
    return found


def by_file(waits: Mapping[str, int]) -> dict[str, int]:
    """How often the host waited in each file; what its functions are called does not matter."""
    found = Counter[str]()
    for place, count in waits.items():
        found[place.split(":")[0]] += count
    return dict(found)


def waits_of(options: Mapping[str, Any], count: int = 1) -> tuple[dict[str, int], Trainer]:
    """Train on both devices, compare, and return how often the host waited, by place."""
    here = rounds(build_trainer(assembled(options), CPU), count)
    model = assembled(options)
    with pretend_device() as waits:
        trainer = build_trainer(model, DEVICE)
        assert all(isinstance(p, Elsewhere) for p in trainer.bench.optimization.parameters)
        waits.clear()
        there = rounds(trainer, count)
        counted = by_file(waits)
    for one, other in zip(here, there, strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)
    return counted, trainer


@pytest.mark.parametrize(
    "more",
    [
        {"gradients": "stream"},
        {"gradients": "packed"},
        {"gradients": "stream", "micro_batch_size": 3},
        {"gradients": "stream", "dev_head": "end-task", "task_clip": 1.0, "save_memory": True},
    ],
    ids=lambda more: " ".join(map(str, more.values())),
)
def test_a_step_waits_once(exact: dict[str, Any], more: dict[str, Any]) -> None:
    """Whatever computes its gradients, with the same losses as on the CPU."""
    waits, _ = waits_of({**exact, "space": "td", "weighter": "factored", **more}, 3)
    assert waits == {STEP: 3}


@pytest.mark.parametrize(
    ("space", "gradients"),
    [
        *(("td+c", "packed"), ("more", "stream")),
        *(
            pytest.param(space, gradients, marks=pytest.mark.full)
            for space, gradients in (
                *(("td+c", "stream"), ("more", "packed")),
                *product(("td+ed", "td+u"), ("stream", "packed")),
            )
        ),
    ],
)
def test_no_primitive_makes_a_step_wait(
    exact: dict[str, Any], task_files: Path, tmp_path: Path, space: str, gradients: str
) -> None:
    """One step of all objectives of a space, several rows each: each has its loss on the CPU."""
    text = task_files / "domain.txt"
    (tmp_path / "more.yaml").write_text(MORE)
    given = {
        "td+c": {},
        "td+ed": {"domain": text},
        "td+u": {"unlabelled": text},
        "more": {
            "out_of_domain": text,
            "space": str(tmp_path / "more.yaml"),
            "aux_task": {"others": task_files / "test.jsonl"},
        },
    }[space]
    options = {**exact, "space": space, "weighter": "static", "aux_batch_size": 120} | given
    waits, trainer = waits_of({**options, "gradients": gradients})
    assert len(trainer.bench.losses.means()) == 1 + len(trainer.bench.tasks.auxiliaries)
    assert waits == {STEP: 1}


@pytest.mark.parametrize(
    ("weighter", "given", "expected"),
    [
        ("single-task", {}, {STEP: 1}),
        ("static", {}, {STEP: 1}),
        ("meta-tartan", {}, {STEP: 1}),
        ("uncertainty", {}, {STEP: 1}),
        ("gradnorm", {}, {STEP: 1}),
        ("dwa", {}, {STEP: 1}),
        # All tasks' losses, norms and products come together; the step along their sum needs
        # nothing, because the norms say that it is finite.
        ("pcgrad", {}, {"updates.py": 1}),
        ("cagrad", {}, {"updates.py": 1}),
        # A trial of each of four tasks, of one step, and two steps of SGD on the α, each of which
        # starts where the one before has led.
        (
            "alpha-vil",
            {"fraction": 0.08, "tuning_steps": 2},
            {STEP: 4, TRIAL: 6},
        ),
        # The score that has to be beaten, that of each task's trial, and of all tasks' together.
        ("diw", {"fraction": 0.08, "tries": 1}, {STEP: 5, TRIAL: 5, SCORE: 6}),
        # The dev score before and after two steps.
        ("autosem", {"k": 2}, {STEP: 2, SCORE: 2}),
        ("factored-bandit", {"k": 2}, {STEP: 2, SCORE: 2}),
        # A score of each of four branches, and of three of them merged with the best.
        ("forkmerge", {"steps": 2, "shares": 2}, {STEP: 8, TRIAL: 4, SCORE: 7}),
        # A trial of each of three objectives and one of the end task after them.
        (
            "tapweight",
            {"pretraining_steps": 1, "fine_tuning_steps": 2},
            {STEP: 5, TRIAL: 5},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_weighters_wait_for(
    exact: dict[str, Any], weighter: str, given: dict[str, Any], expected: dict[str, int]
) -> None:
    """Their rounds wait once for each decision that the host has to take."""
    chosen = {"weighter": weighter, "set": {weighter: given} if given else {}}
    assert waits_of({**exact, **chosen})[0] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_of_end_tasks(exact: dict[str, Any], kind_files: Path, kind: str) -> None:
    files = {part: kind_files / kind / f"{part}.jsonl" for part in ("train", "dev")}
    options = {**exact, **files, "space": str(kind_files / "space.yaml"), "weighter": "factored"}
    waits, trainer = waits_of(options, 3)
    assert waits == {STEP: 3}
    with pretend_device() as counted:
        trainer.score()
        assert by_file(counted) == {SCORE: 1}


def test_two_texts_a_row(exact: dict[str, Any], task_files: Path, tmp_path: Path) -> None:
    files = {}
    for part in ("train", "dev"):
        rows = [
            json.loads(line) for line in (task_files / f"{part}.jsonl").read_text().splitlines()
        ]
        files[part] = tmp_path / f"{part}.jsonl"
        files[part].write_text(
            "".join(json.dumps({**row, "other": row["text"][::-1]}) + "\n" for row in rows)
        )
    options = {**exact, **files, "text_pair": "other", "space": "td", "weighter": "factored"}
    assert waits_of(options)[0] == {STEP: 1}


@pytest.mark.full
def test_the_full_space(exact: dict[str, Any], task_files: Path) -> None:
    """Samples of all objectives that there are, generated text among them."""
    texts = dict.fromkeys(("domain", "out_of_domain", "unlabelled"), task_files / "domain.txt")
    small = {"neural-lm": {"texts": 12, "train_steps": 20}, "factored": {"n": 12}}
    options = {**exact, **texts, "space": "full", "weighter": "factored", "set": small}
    waits, trainer = waits_of({**options, "aux_batch_size": 90}, 2)
    assert waits == {STEP: 2}
    assert len(trainer.bench.tasks.auxiliaries) > 200


def test_it_goes_on_from_a_checkpoint_of_the_cpu(exact: dict[str, Any], tmp_path: Path) -> None:
    """All that is restored is on the accelerator, and the next steps wait no more than others."""
    options = {**exact, "weighter": "factored"}
    here = build_trainer(assembled(options), CPU)
    rounds(here, 2)
    save_checkpoint(tmp_path, here)
    model = assembled(options)
    with pretend_device() as waits:
        there = build_trainer(model, DEVICE)
        load_checkpoint(tmp_path, there)
        waits.clear()
        found = rounds(there, 2)
        assert by_file(waits) == {STEP: 2}
    for one, other in zip(rounds(here, 2), found, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
