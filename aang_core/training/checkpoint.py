"""Checkpoints: everything needed to continue training as if it had not been interrupted."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from aang_core.errors import DataError, PluginError
from aang_core.storage.durable import difference, summary
from aang_core.storage.run_folder import CheckpointStore, RunFolder
from aang_core.tasks.processes import ALONE, Processes
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.trainer import Trainer

TENSORS = "state.safetensors"
REST = "state.json"
CLOCK = "clock.json"
"""How long training has taken; in its own file, because it differs between equal runs."""

LOGS = "logs.json"
"""How long the logs of the run were, with checksums; in its own file, as one log has times."""

FORMAT = 4
"""Version of the format, raised when the state's layout changes; others are refused."""

_OF_WRONG_VALUES = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What code raises if it is given values of other types or names than it expects."""

_TENSOR = "$tensor"
"""Key that marks the place of a tensor in the JSON part; its value is the tensor's name."""


def save_checkpoint(folder: Path, trainer: Trainer) -> None:
    """Save a trainer's state: tensors as safetensors, the rest as JSON, nothing pickled.

    Args:
        folder: where to write; created if missing.
        trainer: the trainer to save.
    """
    tensors: dict[str, Tensor] = {}
    rest = {"format": FORMAT, **_without_tensors(trainer.state_dict(), (), tensors)}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / TENSORS)
    (folder / REST).write_text(json.dumps(rest), encoding="utf-8")
    (folder / CLOCK).write_text(json.dumps(trainer.clock.state_dict()), encoding="utf-8")


def load_checkpoint(folder: Path, trainer: Trainer) -> None:
    """Restore the state saved in ``folder`` into a newly built trainer.

    Args:
        folder: the checkpoint.
        trainer: the trainer to restore.

    Raises:
        DataError: there is no checkpoint, its contents are not what training saves, or it belongs
            to another model, space or version.
    """
    try:
        tensors = load_file(folder / TENSORS)
        rest = json.loads((folder / REST).read_text(encoding="utf-8"))
        clock = json.loads((folder / CLOCK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise DataError(f"{folder}: no usable checkpoint: {error}") from error
    if not isinstance(rest, dict) or rest.get("format") != FORMAT:
        raise DataError(
            f"{folder}: another version of AANG saved this checkpoint and this one cannot read it; "
            "resume with that version, or start a new training"
        )
    try:
        trainer.load_state_dict(_with_tensors(rest, tensors))
        trainer.clock.load_state_dict(clock)
        # Bad values that a weighter restored unchecked show when it is asked for them.
        trainer.weighter.weights()
        trainer.weighter.state_dict()
    except PluginError as error:
        raise _wrong_contents(folder, str(error)) from error
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    except (*_OF_WRONG_VALUES, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise _wrong_contents(folder, f"{type(error).__name__}: {reason}") from error


def _wrong_contents(folder: Path, reason: str) -> DataError:
    return DataError(
        f"{folder}: its checksums are right, but training cannot have saved its contents: "
        f"{reason}. Remove it to resume from the checkpoint before it"
    )


def _without_tensors(value: Any, path: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    """The state with its tensors moved to ``tensors``, each named after its place."""
    if isinstance(value, Tensor):
        name = "|".join(path)
        tensors[name] = value.detach().contiguous().cpu()
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        return {key: _without_tensors(v, (*path, key), tensors) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_tensors(v, (*path, str(i)), tensors) for i, v in enumerate(value)]
    return value


def _with_tensors(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of `_without_tensors`."""
    if isinstance(value, dict):
        if value.keys() == {_TENSOR}:
            return tensors[value[_TENSOR]]
        return {key: _with_tensors(part, tensors) for key, part in value.items()}
    return [_with_tensors(part, tensors) for part in value] if isinstance(value, list) else value


def _recorded_logs(checkpoint: Path) -> Any:
    """The sizes and checksums of the logs when a checkpoint was saved."""
    return json.loads((checkpoint / LOGS).read_text(encoding="utf-8"))


def _other_place(first: str, other: str) -> str:
    """How the place where another process continues differs from that of the first process."""
    expected, found = json.loads(first), json.loads(other)
    if found["checkpoint"] != expected["checkpoint"]:
        return (
            f"it finds {found['checkpoint'] or 'no checkpoint'}, and the first process "
            f"{expected['checkpoint'] or 'none'}"
        )
    names = [name for name in expected["texts"] if expected["texts"][name] != found["texts"][name]]
    return (
        f"the texts after the checkpoint ({', '.join(names)}) differ from those of the first "
        "process, so a file has changed there"
    )


class Checkpointer:
    """Saves a trainer between rounds: every ``seconds`` at most, and when asked to stop.

    The time of saving has no influence on the result of training. All processes hold the same
    state, so only the first one saves.

    Args:
        folder: the run folder.
        name: name of the checkpoints' folder in it.
        logs: files of the run that grow during training; loading a checkpoint truncates them to
            the step it was saved at.
        seconds: least time between two checkpoints.
        interruption: tells whether a signal has asked to stop.
        processes: the processes that share the training.
    """

    def __init__(
        self,
        folder: RunFolder,
        name: str,
        logs: Sequence[str],
        *,
        seconds: float,
        interruption: Interruption,
        processes: Processes = ALONE,
    ) -> None:
        self._folder = folder
        self._name = name
        self._logs = logs
        self._store = CheckpointStore(folder.path / name)
        self._seconds = seconds
        self._interruption = interruption
        self._processes = processes
        self._last = time.monotonic()

    def reached(self, trainer: Trainer) -> None:
        """Save if it is time.

        Raises:
            Interrupted: a signal has asked to stop; the checkpoint is written.
            StorageError: the checkpoint cannot be written; the last one is still there.
        """
        # Read once only: a signal that arrives during saving waits for the next boundary.
        asked = self._processes.largest(self._interruption.number or 0)
        if asked or time.monotonic() - self._last >= self._seconds:
            self.save(trainer)
        if asked:
            raise Interrupted(asked, trainer.bench.steps)

    def save(self, trainer: Trainer) -> None:
        """Save now.

        Raises:
            StorageError: the checkpoint cannot be written; the last one is still there.
        """
        if not self._processes.first:
            return

        # The logs must not lag behind a checkpoint, or lines would be lost for good.
        self._folder.sync(*self._logs)

        def write(folder: Path) -> None:
            save_checkpoint(folder, trainer)
            logs = {name: summary(self._folder.path / name) for name in self._logs}
            (folder / LOGS).write_text(json.dumps(logs), encoding="utf-8")
            self._folder.share_mode(folder)

        with self._folder.writing(self._name):
            self._store.save(write)
        self._last = time.monotonic()

    def load(self, trainer: Trainer) -> None:
        """Restore trainer and logs from the newest whole checkpoint, or empty the logs.

        A checkpoint whose logs have changed since counts as damaged. The one before it needs fewer
        of their lines, and the others are written again.

        Raises:
            DataError: there are checkpoints, but none can be used.
            SharedError: another process cannot use it, or finds another checkpoint or other text.
        """
        with self._processes.all_or_none():
            found = self._store.newest(self._problem_of_logs)
            if found is not None:
                load_checkpoint(found, trainer)
        if self._processes.size > 1:
            name = "" if found is None else found.name
            place = {"checkpoint": name, "texts": trainer.bench.stream_digests}
            self._processes.refuse_if_different(json.dumps(place), _other_place)
        logs = {} if found is None else _recorded_logs(found)
        for name in self._logs:
            self._folder.cut_to(name, logs[name]["bytes"] if found is not None else 0)

    def _problem_of_logs(self, checkpoint: Path) -> str | None:
        try:
            recorded = _recorded_logs(checkpoint)
            logs = {name: recorded[name] for name in self._logs}
            return difference(self._folder.path, logs, grows=True)
        except (OSError, *_OF_WRONG_VALUES) as error:
            return f"{LOGS} cannot be read: {error!r}"

    def drop_older(self) -> None:
        """Delete all checkpoints but the newest, when training is over."""
        if self._processes.first:
            self._store.drop_older()

    def drop_all(self) -> None:
        """Delete all checkpoints, once the trained model is saved."""
        if self._processes.first:
            self._store.drop_all()
