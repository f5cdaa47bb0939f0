"""Opens the folder of a new or a resumed run."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aang_core.config import TrainConfig, recorded_config
from aang_core.errors import AangError, ConfigError, DataError, LockedError
from aang_core.runs.kept_data import with_own_copies
from aang_core.storage.lock import locked, refuse_if_locked
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.training.memory import running_out_told


@contextmanager
def opened(out: Path, *, resume: bool, processes: Processes) -> Iterator[RunFolder]:
    """Open and lock a run folder.

    If an error leaves a run that can be resumed, the error gets a note with the command. A new
    folder is removed if nothing could be written to it. With several processes, the first one
    creates the folder and writes to it.
    """
    if not processes.first:
        processes.wait()
        with running_out_told():
            yield RunFolder(out, writes=False)
        return
    new = not resume and not out.exists()
    folder = RunFolder(out) if resume else RunFolder.create(out)
    try:
        with locked(out), running_out_told():
            if resume:
                check_unfinished(out)
            processes.wait()
            yield folder
    except LockedError:
        raise
    except AangError as error:
        if resume and isinstance(error, DataError):
            raise  # what is there cannot be resumed by this version, so no command is offered
        if (out / "config.yaml").is_file():
            error.add_note(f"What was trained is kept. To go on:\n    {resume_command(out)}")
        elif new:
            shutil.rmtree(out, ignore_errors=True)
        raise


def resume_command(out: Path) -> str:
    """The command that resumes the run in ``out``."""
    return shlex.join(["aang", "train", "--resume", str(out)])


def unfinished(out: Path, **over: Any) -> TrainConfig:
    """The configuration of the interrupted run in ``out``.

    Args:
        out: the run folder.
        **over: options that override it for the rest of the run.

    Raises:
        ConfigError: ``out`` is not a run folder, or the run has finished.
        LockedError: the run is still going on.
    """
    check_unfinished(out)
    refuse_if_locked(out)
    return with_own_copies(recorded_config(out / "config.yaml", **over, out=out), out)


def check_unfinished(out: Path) -> None:
    """Check that the run in ``out`` can be resumed.

    Raises:
        ConfigError: ``out`` is not a run folder, or the run has finished.
    """
    if not (out / "config.yaml").is_file():
        raise ConfigError(f"--resume {out}: is not a run folder, it has no config.yaml")
    if (out / "result.json").is_file():
        raise ConfigError(f"--resume {out}: the run has finished; there is nothing to resume")
