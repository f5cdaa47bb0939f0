"""Whole runs with objectives on the end task's own rows, coupled rows and several views."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.flop_counter import FlopCounterMode

from aang_core import load_plugins
from tests.support.runs import Assembly, assemble, build_trainer, prepare_sources, resolve_config
from tests.support.training import Draws, Trainer, draw_segments
from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.launching import finished, flat, launch, lines
from tests.training.resuming import after_lines, everything, kill
from tests.training.trainers import assert_goes_on

DENOISE = "end-task-rows/no-op/bidirectional/denoise"
CONTRAST = "end-task-rows/no-op/bidirectional/supervised-contrast"
SPACE = """
name: contrasts
data: [task, end-task-rows]
transform: [no-op, mask]
representation: [bidirectional, left-to-right]
output: [denoise, end-task, supervised-contrast, simcse]
"""


def trainer_of(options: dict[str, object], **more: object) -> tuple[Assembly, Trainer]:
    registry = load_plugins().registry
    config = resolve_config({**options, **more}, {}, registry)
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, registry))
    return assembly, build_trainer(assembly, torch.device("cpu"))


def flops_of_a_step(options: dict[str, object], **more: object) -> int:
    _, trainer = trainer_of(options, **more)
    with FlopCounterMode(display=False) as counter:
        trainer.weighter.round(trainer.bench)
    return int(counter.get_total_flops())


def test_the_recipe_costs_what_fine_tuning_costs(options: dict[str, object]) -> None:
    """At most 1.05 of the floating-point operations, on the same rows."""
    options |= {"batch_size": 32, "precision": "fp32"}
    plain = flops_of_a_step(options, weighter="single-task")
    contrast = flops_of_a_step(options, recipe="contrast")
    assert 1.0 < contrast / plain <= 1.05


def test_factored_trains_what_shares_the_end_tasks_pass_in_every_step(
    options: dict[str, object], tmp_path: Path
) -> None:
    """All objectives of one view on the end task's rows; ``simcse`` reads them twice more."""
    space = tmp_path / "space.yaml"
    space.write_text(SPACE, encoding="utf-8")
    _, trainer = trainer_of(
        options, space=str(space), weighter="factored", set={"factored": {"n": 1}}
    )
    free = ("denoise", "end-task", "supervised-contrast")
    for _ in range(4):
        trainer.weighter.round(trainer.bench)
        assert trainer.bench.last is not None
        trained = set(trainer.bench.last.coefficients)
        assert {CONTRAST.replace("supervised-contrast", output) for output in free} <= trained
        assert len(trained) == 5  # the end task, these three, and one that was drawn


def test_objectives_that_differ_in_their_output_share_a_forward_pass(
    options: dict[str, object], tmp_path: Path
) -> None:
    """Three outputs on the same rows: one forward pass for them, and one for the end task."""
    space = tmp_path / "space.yaml"
    space.write_text(
        "name: s\ndata: [task]\ntransform: [no-op]\nrepresentation: [bidirectional]\n"
        "output: [denoise, end-task, supervised-contrast]\n"
    )
    assembly, trainer = trainer_of(options, space=str(space), weighter="static")
    rows: list[int] = []
    assembly.model.body.register_forward_hook(
        lambda module, args, kwargs, output: rows.append(len(output)), with_kwargs=True
    )
    trainer.weighter.round(trainer.bench)
    # Eight rows of the end task; of the auxiliary eight the largest of three shares.
    assert sum(rows) == 8 + 3


@pytest.mark.parametrize("total", [60, 4])
def test_what_compares_its_rows_has_an_equal_share_whatever_its_weight(
    options: dict[str, object], tmp_path: Path, total: int
) -> None:
    """Its loss depends on how many rows there are, and with one there is nothing to compare."""
    space = tmp_path / "space.yaml"
    space.write_text(SPACE.replace(", end-task-rows", "").replace("no-op, ", ""), encoding="utf-8")
    assembly, _ = trainer_of(options, space=space, weighter="static", aux_batch_size=total)
    end, others = assembly.end_task, assembly.auxiliaries
    draws = Draws(
        {"end-task": end, **{f"auxiliary:{task.name}": task for task in others}},
        generator=torch.Generator().manual_seed(0),
        device=torch.device("cpu"),
    )
    weights = {task.name: 0.001 if task.couples_rows else 1.0 for task in (end, *others)}
    _, segments = draw_segments(draws, end, others, weights, assembly.row_budget, 1)
    rows = {s.task.name: sum(batch.rows for batch in s.batches) for s in segments}
    equal = total // len(others)
    coupled = [task.name for task in others if task.couples_rows and task.name in rows]
    assert coupled
    for name in coupled:
        assert rows[name] >= max(2, equal - equal % 2)


def test_every_kind_goes_on_from_a_checkpoint(options: dict[str, object], tmp_path: Path) -> None:
    """Riders, coupled rows and two views under ``factored``, bit by bit."""
    space = tmp_path / "contrasts.yaml"
    space.write_text(SPACE)
    more = {"space": str(space), "weighter": "factored", "set": {"factored": {"n": 6}}}
    more |= {"precision": "fp32", "dev_head": "own-rows"}
    assembly = assert_goes_on({**options, **more}, tmp_path / "checkpoint", rounds=4, at=2)
    assert CONTRAST in {task.name for task in assembly.auxiliaries}


@pytest.mark.full
def test_every_kind_trains_together_and_goes_on_after_a_kill(
    forks: Forks, train_options: list[object], tmp_path: Path
) -> None:
    """Riders, coupled rows and two views under ``factored``, killed and resumed bit-identically."""
    space = tmp_path / "contrasts.yaml"
    space.write_text(SPACE)
    command = [
        *("train", *train_options, "--space", space, "--weighter", "factored"),
        *("--set", "factored.n=6", "--steps", 12, "--eval-every", 4, "--checkpoint-every", 0),
        *("--quiet", "--precision", "fp32"),
    ]
    whole = forks.aang(*command, "--out", tmp_path / "whole")
    assert whole.wait() == 0, whole.said
    run = tmp_path / "run"
    child = forks.aang(*command, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 5))
    kill(child)
    child = forks.aang("train", "--resume", run, "--quiet")
    assert child.wait() == 0, child.said
    assert everything(run) == everything(tmp_path / "whole")
    sampled = {name for line in lines(run / "weights.jsonl") for name in line["coefficients"]}
    assert {CONTRAST, "task/mask/bidirectional/simcse"} <= sampled


@pytest.mark.full
@pytest.mark.parametrize(
    ("weighter", "space"),
    [
        ("static", CONTRAST),
        ("factored", CONTRAST),
        ("static", DENOISE),
    ],
)
def test_two_processes_train_what_one_trains(
    aang: Aang,
    train_options: list[object],
    encoder: Path,
    tmp_path: Path,
    weighter: str,
    space: str,
) -> None:
    """Contrast over the end task's rows compares the rows of both processes.

    The decoder of ``denoise`` is tied to the word embeddings, which it reaches in both of them.
    """
    calm = tmp_path / "encoder"
    shutil.copytree(encoder, calm)
    settings = json.loads((calm / "config.json").read_text(encoding="utf-8"))
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (calm / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [
        *("train", *(calm if option == encoder else option for option in train_options)),
        *("--space", space, "--weighter", weighter, "--quiet", "--precision", "fp32"),
        *("--steps", 3, "--dev-head", "own-rows"),
    ]
    assert aang(*command, "--out", tmp_path / "one").status == 0
    done = finished(launch(2, *command, "--out", tmp_path / "two"))
    assert done.returncode == 0, done.stderr
    for name in ("weights.jsonl", "metrics.jsonl"):
        pairs = zip(lines(tmp_path / "one" / name), lines(tmp_path / "two" / name), strict=True)
        for i, (one, two) in enumerate(pairs):
            # AdamW's first steps go by the sign of a gradient, and so amplify its rounding.
            tolerance = 1e-5 if i == 0 else 5e-3
            assert flat(two) == pytest.approx(flat(one), abs=tolerance)
    one = load_file(tmp_path / "one" / "model" / "model.safetensors")
    two = load_file(tmp_path / "two" / "model" / "model.safetensors")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=1e-4)


def test_the_packed_engine_takes_all_kinds(options: dict[str, object], tmp_path: Path) -> None:
    """In one pass, each with a cosine; that the engines agree is tested step by step."""
    space = tmp_path / "contrasts.yaml"
    space.write_text(SPACE)
    # With the dev head of the step's own rows every step measures, the first two included.
    options |= {"gradients": "packed", "precision": "fp32", "dev_head": "own-rows"}
    assembly, trainer = trainer_of(options, space=str(space))
    for _ in range(3):
        trainer.weighter.round(trainer.bench)
        assert trainer.bench.last is not None
        assert trainer.bench.last.signals is not None
    weights = trainer.weighter.weights()
    assert set(weights) == {"end-task", *(task.name for task in assembly.auxiliaries)}
    assert len(set(weights.values())) > 2


def test_td_keeps_its_meaning(aang: Aang) -> None:
    counts = {
        name: len(json.loads(aang("show-space", name, "--json").out)["objectives"])
        for name in ("td", "td+ed", "td+c", "td+ed+c")
    }
    assert counts == {"td": 24, "td+ed": 40, "td+c": 42, "td+ed+c": 66}


def test_bad_input(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    run = tmp_path / "run"
    small = aang(
        *("train", *train_options, "--space", "contrast", "--micro-batch-size", 4, "--out", run)
    )
    assert small.status == 2
    assert f"--micro-batch-size 4: {CONTRAST} needs its 8 rows in one pass" in small.err
    illegal = aang(
        *("train", *train_options, "--out", run),
        *("--space", "end-task-rows/mask/bidirectional/supervised-contrast"),
    )
    assert illegal.status == 2
    shown = aang("show-space", "s2orc/no-op/bidirectional/supervised-contrast").out
    assert "the output supervised-contrast requires labels:end-task" in shown
    assert not run.exists()


def test_one_row_a_step(
    aang: Aang, train_options: list[object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Contrast has no loss then; training continues and reports this once."""
    done = aang(
        *("train", *train_options, "--space", "contrast", "--weighter", "static"),
        *("--batch-size", 1, "--steps", 2, "--eval-every", 2),
        *("--out", tmp_path / "run"),
    )
    assert done.status == 0
    assert caplog.text.count("all 1 rows of a batch have different classes") == 1


def test_a_stage_that_couples_rows_without_saying_so(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Found in the rehearsal, before there is a run folder."""
    plugin = tmp_path / "centred.py"
    plugin.write_text(
        """
from torch import nn
from aang_core import Output, RowLosses, hookimpl

class Centred(Output):
    def head(self, heads):
        return nn.Linear(heads.hidden_size, 1)

    def targets(self, rows):
        return {}

    def losses(self, head, hidden, targets):
        values = head(hidden[:, 0]).squeeze(1)
        losses = (values - values.mean()) ** 2
        return RowLosses(losses, losses.new_ones(len(losses)))

@hookimpl
def aang_register_outputs(register):
    register("centred", "rows against their mean", Centred, requires=("text",))
"""
    )
    run = tmp_path / "run"
    done = aang(
        *("--plugin", plugin, "train", *train_options, "--out", run),
        *("--space", "task/no-op/bidirectional/centred"),
    )
    assert done.status == 2
    assert "the loss of a row of output centred depends on other rows" in done.err
    assert "couples_rows = True" in done.err
    assert not run.exists()


def test_contrast_is_what_trains_by_default(
    aang: Aang, train_options: list[object], whole: Path, tmp_path: Path
) -> None:
    """Where nothing says how; a space, which ``whole`` was given, takes its place."""
    silent = [option for option in train_options if option not in ("--space", "td")]
    run = tmp_path / "run"
    assert aang("train", *silent, "--steps", 1, "--out", run, "--quiet").status == 0
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["recipe"] == "contrast"
    (line,) = lines(run / "weights.jsonl")
    assert line["coefficients"] == {"end-task": 0.5, CONTRAST: 0.5}
    assert "recipe" not in json.loads((whole / "result.json").read_text(encoding="utf-8"))
