"""The state of interrupted runs with valid checksums and other contents, as targets of the fuzzer.

An input is JSON. That of a checkpoint has the JSON files of the checkpoint as they are, and for
each tensor its dtype, its shape and what it is filled with. The target writes the files and their
checksums, resumes a small training from them, and trains on.
"""

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from aang.corpora.text_streams import RepeatedTexts
from aang.runs import inputs
from aang.runs.files import read_part, refuse_links
from aang.runs.resume import unfinished
from aang.runs.schema import PluginsUsed, StageResult, TrainRows
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from aang_core import Example, TensorTask
from aang_core.errors import AangError
from aang_core.gradients import DevHeadSettings
from aang_core.gradients.dev_head import find_dev_heads
from aang_core.plugins import Plugins, load_plugins
from aang_core.storage.checkpoint_store import CheckpointStore
from aang_core.storage.lock import LOCK, holder_of, locked, refuse_if_locked, take_from
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.weighting import TaskCard
from aang_core.training.bench import RunTasks, StepSettings
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.rows import RowBudget
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.trainer import Boundary, Schedule, Trainer, Watching
from benchmarks.fuzzing.another_file import with_another_file

OWN = "own"
"""What a tensor is filled with if it keeps its values."""

ROWS = RowBudget(5, 4, 6)
DRAWN = find_dev_heads("drawn", "adamw", load_plugins().registry)

CASES: Mapping[str, Mapping[str, Any]] = {
    "factored": {"step": StepSettings(ROWS, weights_every=2)},
    "factored, averaged": {"dev_head": DevHeadSettings(rows=9, average=0.8)},
    "factored, drawn": {"dev_head": DevHeadSettings("drawn", 9, plugins=DRAWN)},
    "meta-tartan": {"step": StepSettings(ROWS, draws_per_step=2)},
    "meta-tartan, momentum": {"optimizer": OptimizerSettings(0.01, 0.01, optimizer="sgd")},
    **{name: {} for name in ("static", "single-task", "alpha-vil", "diw", "dwa", "gradnorm")},
    **{name: {} for name in ("uncertainty", "pcgrad", "cagrad", "forkmerge", "tapweight")},
    **{name: {} for name in ("autosem", "factored-bandit")},
}
"""Options of a training, by the name of its weighter and whatever else is remarkable."""

_STEPS = 12
_LOG = "metrics.jsonl"


class _Texts:
    """The place in a source of texts, as a stream of rows has it in its state."""

    def __init__(self) -> None:
        self.texts = RepeatedTexts(lambda number: [Example(str(i)) for i in range(3 + number % 2)])

    @property
    def digest(self) -> str:
        return str(self.texts.state_dict())

    def after_step(self, steps: int) -> None:
        next(self.texts)

    def state_dict(self) -> dict[str, Any]:
        return self.texts.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.texts.load_state_dict(state)


def _error(predicted: Tensor, wanted: Tensor) -> Tensor:
    return nn.functional.cross_entropy(predicted, wanted, reduction="none")


def trainer(case: str, boundary: Boundary | None = None) -> Trainer:
    """A training of some numbers: an end task and two others, of which one reads a stream."""
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 13).unsqueeze(1)
    first = nn.Linear(1, 4)
    body = nn.Sequential(first, nn.LayerNorm(4), nn.Tanh(), nn.Dropout(0.2))
    body.register_buffer("of_the_body", torch.zeros(3, dtype=torch.int64))

    def task(name: str, among: int) -> TensorTask:
        targets = (torch.arange(13) * 7 % among).long()
        factors = {"data": name, "transform": "t"}
        return TensorTask(name, nn.Linear(4, among), {"input": x}, targets, _error, factors)

    end, *others = task("end", 2), task("a", 2), task("b", 3)
    cards = [TaskCard(other.name, other.factors) for other in others]
    primitive = _plugins().registry.weighter(case.partition(",")[0])
    options: dict[str, Any] = {
        "optimizer": OptimizerSettings(0.01, 0.01),
        "schedule": Schedule(_STEPS, 4, 40, "accuracy"),
        "step": StepSettings(ROWS),
        "seed": 0,
    }
    return make_trainer(
        body,
        RunTasks(end, end, others, {"b": _Texts()}),
        CheckedWeighter.make(primitive, TaskCard("end"), cards, {}),
        TrainingSettings(**{**options, **CASES[case]}),
        evaluate=lambda: {"accuracy": -float(first.weight.detach().norm())},
        score=lambda rows: -float(first.weight.detach().norm()),
        watching=Watching(boundary=boundary),
    )


def checkpointer_in(run: Path) -> Checkpointer:
    """What saves and restores the checkpoints of a training in the folder ``run``."""
    (run / "config.yaml").touch()
    return Checkpointer(
        RunFolder(run), "checkpoints", (_LOG,), seconds=1e9, interruption=Interruption()
    )


def checkpoint_seeds(folder: Path, cases: Sequence[str] = tuple(CASES)) -> list[bytes]:
    """A checkpoint of each case, after some of its steps."""
    return [_described(case, folder / str(number)) for number, case in enumerate(cases)]


class _EnoughError(Exception):
    pass


class _SavesOnce:
    """Ends a training in its middle, with a checkpoint."""

    def __init__(self, checkpointer: Checkpointer) -> None:
        self._checkpointer = checkpointer

    def reached(self, trained: Trainer) -> None:
        if trained.bench.steps >= _STEPS // 2:
            self.save(trained)
            raise _EnoughError

    def save(self, trained: Trainer) -> None:
        self._checkpointer.save(trained)


def _described(case: str, run: Path) -> bytes:
    run.mkdir(parents=True)
    checkpointer = checkpointer_in(run)
    with suppress(_EnoughError):
        trainer(case, _SavesOnce(checkpointer)).train()
    (saved,) = (run / "checkpoints").iterdir()
    files = {path.name: _json(path) for path in saved.glob("*.json")}
    del files["manifest.json"]
    tensors = {
        name: {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "fill": OWN}
        for name, t in load_file(saved / "state.safetensors").items()
    }
    return json.dumps({"case": case, "files": files, "tensors": tensors}).encode()


def checkpoint_check(seeds: Path, folder: Path) -> Callable[[Path], None]:
    """The check of a checkpoint.

    Args:
        seeds: where `checkpoint_seeds` has left the checkpoints.
        folder: a folder that may be changed.
    """
    numbers = {case: number for number, case in enumerate(CASES)}

    def check(path: Path) -> None:
        described = json.loads(path.read_bytes().partition(b"\n")[0] or b"null")
        if not isinstance(described, dict) or str(described.get("case")) not in CASES:
            return
        case = described["case"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / _LOG).touch()
        original = load_file(seeds / str(numbers[case]) / "checkpoints/000001/state.safetensors")
        CheckpointStore(folder / "checkpoints").save(lambda into: _write(into, described, original))
        checkpointer = checkpointer_in(folder)
        resumed = trainer(case, checkpointer)
        checkpointer.load(resumed)
        resumed.train()
        checkpointer.save(resumed)

    return check


def _write(into: Path, described: Mapping[str, Any], original: Mapping[str, Tensor]) -> None:
    files, tensors = described.get("files"), described.get("tensors")
    for name, content in files.items() if isinstance(files, dict) else ():
        if name in ("state.json", "clock.json", "logs.json"):
            (into / name).write_text(json.dumps(content), encoding="utf-8")
    made = {
        name: tensor
        for name, form in (tensors.items() if isinstance(tensors, dict) else ())
        if (tensor := _tensor(form, original.get(name))) is not None
    }
    save_file(
        {name.encode("utf-8", "replace").decode(): t for name, t in made.items()},
        into / "state.safetensors",
    )


def _tensor(form: object, own: Tensor | None) -> Tensor | None:
    """The tensor of this form; None if no tensor has it."""
    if not isinstance(form, dict):
        return None
    dtype = getattr(torch, str(form.get("dtype")), None)
    shape = form.get("shape")
    if not isinstance(dtype, torch.dtype) or not isinstance(shape, list):
        return None
    if any(type(length) is not int or length < 0 for length in shape):
        return None
    if math.prod(shape) > 10_000:
        return None
    fill = form.get("fill")
    if fill == OWN and own is not None and own.shape == torch.Size(shape):
        return own.to(dtype)
    try:
        number = float(fill) if isinstance(fill, int | float) else 7.0
        return torch.full(shape, number).to(dtype)
    except (OverflowError, RuntimeError, TypeError):
        return None


def lock_check(folder: Path) -> Callable[[Path], None]:
    """The check of ``lock.json``."""

    def check(path: Path) -> None:
        folder.mkdir(exist_ok=True)
        lock = folder / LOCK
        for action in (_look, _lock):
            lock.unlink(missing_ok=True)
            shutil.copyfile(path, lock)
            action(folder)

    return check


def _look(folder: Path) -> None:
    holder = holder_of(folder)
    if holder is not None:
        take_from(folder, holder)
    refuse_if_locked(folder)


def _lock(folder: Path) -> None:
    with locked(folder):
        assert holder_of(folder) is not None


def lock_seeds(folder: Path) -> list[bytes]:
    """The lock of this process, and of one that has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        own = (folder / LOCK).read_bytes()
    gone = json.loads(own) | {"pid": 2**22 + 1}
    return [own, json.dumps(gone).encode()]


_STAGE = "pretraining/tapt"
RESUMED = (*(PluginsUsed.file, inputs.Inputs.file, TrainRows.file, f"{_STAGE}/{StageResult.file}"),)
"""Files of an interrupted run that are read when it is resumed, apart from its checkpoints."""


def resumed_check(run: Path) -> Callable[[Path], None]:
    """The check of an interrupted run in which one file is another: its name, then its content.

    Args:
        run: the folder of an interrupted run with all of `RESUMED`; it may be changed.
    """
    began = inputs.recorded_inputs(run)
    assert began is not None
    now = began.model_copy(update={"data": {"train": "others"}})
    return with_another_file(run, RESUMED, lambda: _read_resumed(run, now))


def resumed_seeds(run: Path) -> list[bytes]:
    """Each of `RESUMED` with its name before it."""
    return [name.encode() + b"\n" + (run / name).read_bytes() for name in RESUMED]


def _read_resumed(run: Path, now: inputs.Inputs) -> None:
    refuse_links(run)
    unfinished(run, _plugins().registry)
    inputs.plugin_changes(run, _plugins())
    inputs.recorded_draw(run)
    read_part(StageResult, run / _STAGE)
    recorded = inputs.recorded_inputs(run)
    with inputs.threads_of(recorded, torch.device("cpu")):
        pass
    if recorded is not None:
        inputs.accepted(run, recorded, now, True, lambda sentence: None)
        try:
            inputs.accepted(run, recorded, now, False, lambda sentence: None)
        except AangError:
            return


@cache
def _plugins() -> Plugins:
    return load_plugins()


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
