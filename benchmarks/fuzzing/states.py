"""The lock of a run, and the state of interrupted runs, as targets of the fuzzer."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from aang.runs import inputs
from aang.runs.files import read_part, refuse_links
from aang.runs.resume import unfinished
from aang.runs.schema import PluginsUsed, StageResult, TrainRows

from aang_core.errors import AangError
from aang_core.plugins import Plugins, load_plugins
from aang_core.storage.lock import LOCK, holder_of, locked, refuse_if_locked, take_from
from benchmarks.fuzzing.another_file import with_another_file


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
"""Files of an interrupted run, other than checkpoints, that are read when it is resumed."""


def resumed_check(run: Path) -> Callable[[Path], None]:
    """The check of an interrupted run with one file replaced: inputs have its name and content.

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
