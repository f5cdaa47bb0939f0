"""Interrupted and resumed runs: the result is the same, bit for bit."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.support.storage import holder_of
from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.resuming import after_lines, assert_same_stage, everything, kill, lines

CASES: dict[str, list[object]] = {
    "factored": ["--dev-head", "remembered", "--precision", "fp16"],
    "draws": ["--draws-per-step", 3, "--weights-every", 3, "--set", "factored.n=2"],
    "adapters": ["--lora", 2, "--freeze-layers", 0],
    "frozen layers": ["--freeze-layers", 1, "--gradients", "packed"],
    "mean layer": ["--mean-layer", "--freeze-layers", 1],
    "alpha-vil": [
        *("--weighter", "alpha-vil", "--steps", 60, "--eval-every", 5),
        *("--set", "alpha-vil.n=2", "--set", "alpha-vil.fraction=0.1"),
    ],
    "sgd": [
        *("--weighter", "alpha-vil", "--steps", 60, "--eval-every", 5, "--optimizer", "sgd"),
        *("--schedule", "constant", "--momentum", 0.5, "--lr", 0.05, "--head-lr", 0.05),
        *("--set", "alpha-vil.n=2", "--set", "alpha-vil.fraction=0.1"),
    ],
    "alternate": ["--weighter", "static", "--set", "static.alternate=true"],
    "noise": [
        *("--space", "task/noising-embeds/bidirectional/denoise"),
        *("--set", "noising-embeds.adversarial=true"),
    ],
    "factored by weights": ["--set", "factored.draw=weights", "--set", "factored.n=1"],
    "factored-bandit": [
        *("--weighter", "factored-bandit", "--steps", 22, "--set", "factored-bandit.k=2"),
        *("--set", "factored-bandit.rewind=true", "--set", "factored-bandit.dev_rows=20"),
    ],
    "balanced rows": ["--balanced-rows", "--class-weights", "xml=2.5", "--set", "factored.n=2"],
    "autosem": ["--weighter", "autosem", "--steps", 22, "--set", "autosem.k=2"],
    "pcgrad": ["--weighter", "pcgrad", "--set", "pcgrad.n=2"],
    "cagrad": ["--weighter", "cagrad", "--set", "cagrad.n=2"],
    "uncertainty": ["--weighter", "uncertainty", "--draws-per-step", 2],
    "gradnorm": ["--weighter", "gradnorm", "--weights-every", 3],
    "dwa": ["--weighter", "dwa", "--set", "dwa.every=2", "--draws-per-step", 2],
    "forkmerge": [
        *("--weighter", "forkmerge", "--steps", 48, "--set", "forkmerge.steps=2"),
        *("--set", "forkmerge.n=2"),
    ],
    "tapweight": [
        *("--weighter", "tapweight", "--steps", 48, "--set", "tapweight.pretraining_steps=1"),
        *("--set", "tapweight.fine_tuning_steps=2"),
    ],
}


@pytest.fixture(scope="session")
def whole_of_rounds(
    forks: Forks, small: list[object], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A run whose weighter takes several steps a round, and the same one killed."""
    folder = tmp_path_factory.mktemp("rounds")
    whole, run = folder / "whole", folder / "run"
    options = [
        *(*small, "--weighter", "alpha-vil", "--steps", 30, "--eval-every", 5),
        *("--set", "alpha-vil.n=2", "--set", "alpha-vil.fraction=0.1"),
        *("--set", "alpha-vil.tuning_steps=2"),
    ]
    child = forks.aang(*options, "--out", whole)
    assert child.wait() == 0, child.said
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 3))
    kill(child)
    return whole, run


def test_a_killed_run_goes_on_as_if_it_had_not_been(
    aang: Aang, interrupted: Path, whole: Path
) -> None:
    """Bit for bit, with a checkpoint after every round."""
    assert 6 <= lines(interrupted / "weights.jsonl") < lines(whole / "weights.jsonl")
    done = aang("train", "--resume", interrupted, "--quiet")
    assert done.status == 0, done.err
    assert everything(interrupted) == everything(whole)


def test_a_killed_run_with_rounds_of_many_steps(
    aang: Aang, whole_of_rounds: tuple[Path, Path], tmp_path: Path
) -> None:
    """The round that was under way is taken again."""
    whole, killed = whole_of_rounds
    run = shutil.copytree(killed, tmp_path / "run")
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(whole)
    assert lines(run / "weights.jsonl") < json.loads((run / "result.json").read_text())["steps"]


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_killed_and_resumed(
    aang: Aang, forks: Forks, small: list[object], tmp_path: Path, case: str
) -> None:
    """Killed twice, at different places, with a checkpoint after every round."""
    options = [*small, *CASES[case]]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    for arguments, count in (([*options, "--out", run], 2), (["train", "--resume", run], 5)):
        child = forks.aang(*arguments)
        child.when(after_lines(run / "weights.jsonl", count))
        kill(child)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


def test_another_encoder_under_the_same_name_is_refused(
    aang: Aang, forks: Forks, small: list[object], encoder: Path, tmp_path: Path
) -> None:
    """With adapters the checkpoint leaves the encoder's own weights to the encoder, so that not
    even ``--accept-changes`` goes on with others."""
    own, run = tmp_path / "encoder", tmp_path / "run"
    shutil.copytree(encoder, own)
    child = forks.aang(*small, "--model", own, "--lora", 2, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 2))
    kill(child)
    weights = load_file(own / "model.safetensors")
    weights["bert.embeddings.word_embeddings.weight"][7] += 0.01
    save_file(weights, own / "model.safetensors", metadata={"format": "pt"})
    for accept, said in (
        ([], "--accept-changes continues"),
        (["--accept-changes"], "restore that"),
        ([], "restore that"),
    ):
        done = aang("train", "--resume", run, *accept)
        assert done.status == 2
        assert said in done.err


@pytest.mark.full
def test_stages_go_on_where_they_were_and_finished_ones_are_kept(
    aang: Aang, forks: Forks, train_options: list[object], domain: list[object], tmp_path: Path
) -> None:
    """Killed in the second stage of pre-training, and again in the fine-tuning."""
    options = [
        *("train", *train_options, *domain, "--recipe", "dapt+tapt", "--steps", 12, "--quiet"),
        *("--checkpoint-every", 0, "--set", "tapt.steps=12", "--set", "tapt.eval_every=2"),
        *("--set", "dapt.steps=2", "--set", "tapt.batch_size=8"),
    ]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    tapt = run / "pretraining" / "tapt"
    child.when(after_lines(tapt / "metrics.jsonl", 3))
    kill(child)
    written = (run / "pretraining" / "dapt" / "stage.json").stat().st_mtime_ns
    child = forks.aang("train", "--resume", run)
    child.when(after_lines(run / "weights.jsonl", 3))
    kill(child)
    assert "step 0: held-out" not in child.said, "the stage began anew"
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert (run / "pretraining" / "dapt" / "stage.json").stat().st_mtime_ns == written
    assert not (tapt / "checkpoints").exists()
    assert_same_stage(run, tmp_path / "whole", "tapt")
    assert everything(run) == everything(tmp_path / "whole")


@pytest.mark.full
def test_killed_in_the_final_fine_tuning(
    aang: Aang, forks: Forks, small: list[object], tmp_path: Path
) -> None:
    """Killed during the search and again after it; the search is not repeated."""
    options = [*small, "--steps", 4, "--final-fine-tuning", 6, "--batch-size", 4]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    tuning = Path("final-fine-tuning") / "metrics.jsonl"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 2))
    kill(child)
    child = forks.aang("train", "--resume", run)
    child.when(after_lines(run / tuning, 2))
    kill(child)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert lines(run / "weights.jsonl") == 4
    assert (run / tuning).read_bytes() == (tmp_path / "whole" / tuning).read_bytes()
    assert not any((run / "final-fine-tuning" / "checkpoints").glob("*/state.json"))
    assert everything(run) == everything(tmp_path / "whole")


def tear(run: Path) -> Path:
    """Cut off the newest checkpoint, and leave half a line in each log; the checkpoint."""
    newest = max(p for p in (run / "checkpoints").iterdir() if p.name.isdecimal())
    state = newest / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    for name in ("weights.jsonl", "metrics.jsonl"):
        with (run / name).open("a", encoding="utf-8") as log:
            log.write('{"step": 7, "end_task_w')
    return newest


def test_a_damaged_checkpoint_is_passed_over(
    aang: Aang, interrupted: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The logs are cut back to the one before, a last line that is torn among what goes."""
    newest = tear(interrupted)
    done = aang("train", "--resume", interrupted, "--quiet")
    assert done.status == 0, done.err
    assert f"checkpoint {newest} is damaged: state.safetensors has" in caplog.text
    assert everything(interrupted) == everything(whole)


def test_without_a_checkpoint_that_can_be_used(aang: Aang, interrupted: Path, whole: Path) -> None:
    """Damaged ones stop it; where there is none, the training begins anew."""
    tear(interrupted)
    for folder in (interrupted / "checkpoints").iterdir():
        shutil.rmtree(folder / "state.safetensors", ignore_errors=True)
        (folder / "state.json").unlink(missing_ok=True)
    done = aang("train", "--resume", interrupted)
    assert done.status == 2
    assert "no checkpoint to go on from" in done.err
    shutil.rmtree(interrupted / "checkpoints")
    done = aang("train", "--resume", interrupted, "--quiet")
    assert done.status == 0, done.err
    assert everything(interrupted) == everything(whole)


def test_the_second_process_on_a_run_is_refused(
    aang: Aang, forks: Forks, small: list[object], interrupted: Path, whole: Path
) -> None:
    """The message names the first process, for new and resumed runs; the first is not disturbed."""

    def is_there() -> bool:
        holder = holder_of(interrupted)
        return holder is not None and holder.pid == child.pid

    child = forks.aang("train", "--resume", interrupted)
    child.when(is_there)
    # So that it is not over before the others have come.
    child.signal(signal.SIGSTOP)
    for arguments in (["train", "--resume", interrupted], [*small, "--out", interrupted]):
        done = aang(*arguments)
        assert done.status == 2
        assert f"process {child.pid} on " in done.err
    child.signal(signal.SIGCONT)
    assert child.wait() == 0, child.said
    assert everything(interrupted) == everything(whole)
    assert not (interrupted / "lock.json").exists()


def test_bad_input(aang: Aang, whole: Path, tmp_path: Path) -> None:
    done = aang("train", "--resume", tmp_path)
    assert done.status == 2
    assert "not a run folder" in done.err
    done = aang("train", "--resume", whole)
    assert done.status == 2
    assert "has finished" in done.err
    done = aang("train", "--resume", whole, "--steps", 3)
    assert done.status == 2
    assert "leave out all but" in done.err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_at_the_next_boundary(
    aang: Aang,
    forks: Forks,
    small: list[object],
    whole: Path,
    tmp_path: Path,
    number: signal.Signals,
    status: int,
) -> None:
    """It saves a checkpoint, prints the command to resume, and exits with the signal's status."""
    run = tmp_path / "run"
    child = forks.aang(*small, "--checkpoint-every", 1000, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 3))
    child.signal(number)
    assert child.wait() == status, child.said
    assert f"aang train --resume {run}" in child.said
    assert not (run / "result.json").exists()
    assert not (run / "lock.json").exists()
    newest = max((run / "checkpoints").iterdir())
    state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    assert state["steps"] == lines(run / "weights.jsonl") < 16
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(whole)


def test_a_signal_before_training_leaves_nothing(
    forks: Forks, small: list[object], tmp_path: Path
) -> None:
    """While data is read there is nothing to keep."""
    pipe = tmp_path / "slow.jsonl"
    make_pipe(pipe)
    run = tmp_path / "run"
    child = forks.aang(*small, "--train", pipe, "--out", run)
    child.when(lambda: b"open" in Path(f"/proc/{child.pid}/syscall").read_bytes(), 0.5)
    child.signal(signal.SIGINT)
    assert child.wait() == 130, child.said
    assert "--resume" not in child.said
    assert "Traceback" not in child.said
    assert not run.exists()


@pytest.mark.full
def test_a_signal_in_a_stage_and_in_an_evaluation(
    aang: Aang, forks: Forks, train_options: list[object], tmp_path: Path
) -> None:
    """A stage takes a checkpoint as well; what is asked in an evaluation is not forgotten."""
    options = [
        *("train", *train_options, "--recipe", "tapt", "--steps", 4, "--quiet"),
        *("--set", "tapt.steps=40", "--set", "tapt.eval_every=1"),
    ]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    stage = run / "pretraining" / "tapt"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(stage / "metrics.jsonl", 4))
    child.signal(signal.SIGTERM)
    assert child.wait() == 143, child.said
    assert max((stage / "checkpoints").iterdir()).is_dir()
    assert not (stage / "stage.json").exists()
    child = forks.aang("train", "--resume", run)
    # The folder is opened, so the signal waits; the training's own first evaluation comes later.
    child.when((stage / "stage.json").exists)
    child.signal(signal.SIGINT)
    assert child.wait() == 130, child.said
    assert not (run / "result.json").exists()
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


def test_asked_twice_it_stops_at_once(
    forks: Forks, train_options: list[object], tmp_path: Path
) -> None:
    """In the middle of a round of αVIL that would take long; the folder can still be resumed."""
    run = tmp_path / "run"
    child = forks.aang(
        *("train", *train_options, "--weighter", "alpha-vil", "--steps", 10**6),
        *("--patience", 10**6, "--quiet", "--out", run),
    )
    child.when((run / "metrics.jsonl").exists)
    for seconds in (0.6, 0.2):
        child.when(lambda: False, seconds)
        child.signal(signal.SIGINT)
    assert child.wait() == 130, child.said
    assert f"aang train --resume {run}" in child.said
    assert not (run / "result.json").exists()
    assert not (run / "lock.json").exists()


IMPATIENT = '''
"""A transform in whose code two signals arrive."""

import os
import signal

import torch

from aang_core import Corruption, hookimpl


class Impatient:
    def __call__(self, ids, ordinary, vocabulary, generator):
        if len(ids) > 4:  # in training, and not when values are looked at before
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                torch.zeros(1)
        return Corruption(ids, ordinary)


@hookimpl
def aang_register_transforms(register):
    register("impatient", "is interrupted", Impatient)
'''


def test_an_interrupt_is_no_fault_of_the_code_it_comes_in(
    forks: Forks, train_options: list[object], tmp_path: Path
) -> None:
    plugin, space = tmp_path / "impatient.py", tmp_path / "space.yaml"
    plugin.write_text(IMPATIENT, encoding="utf-8")
    space.write_text(
        "{name: one, data: [task], transform: [impatient], representation: [bidirectional], "
        "output: [denoise]}",
        encoding="utf-8",
    )
    run = tmp_path / "run"
    options = [*train_options, "--space", space, "--out", run]
    child = forks.aang("--plugin", plugin, "train", *options)
    assert child.wait() == 130, child.said
    assert "stopped by SIGINT" in child.said
    assert "repair" not in child.said
    assert f"aang train --resume {run}" in child.said


def make_pipe(path: Path) -> None:
    """A file whose reader waits for somebody to write."""
    import os

    os.mkfifo(path)
