"""The folder of a new run, which no other run gets."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aang.config import TrainConfig
from aang.corpora.names import plain_name
from aang_core.errors import ConfigError
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes


@contextmanager
def new_run_folder(config: TrainConfig, processes: Processes) -> Iterator[Path]:
    """Choose the folder of a run: ``config.out``, or a new one under ``runs/`` named after the run.

    A folder under ``runs/`` is created at once: the same command started twice at the same moment
    trains in two folders. It is removed at the end of the block if nothing was written there.

    Args:
        config: the run's options.
        processes: the processes that share the run; the first one creates the folder.

    Raises:
        ConfigError: ``config.out`` is not empty, or the folder cannot be created.
        LockedError: another process is writing in ``config.out``.
    """
    if config.out is not None:
        RunFolder.check_free(config.out)
        processes.wait()  # until all of them have seen it free
        yield config.out
        return
    number = _take(config) if processes.first else 0
    (number,) = (int(n) for n in processes.agree([number]))
    out = _numbered(config, number)
    try:
        yield out
    finally:
        if processes.first:
            with suppress(OSError):  # the run is in it
                out.rmdir()


def _take(config: TrainConfig) -> int:
    """Create the first folder that does not exist, and return its number."""
    for number in itertools.count(1):
        out = _numbered(config, number)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.mkdir()
        except FileExistsError:
            if out.parent.is_dir():
                continue
            raise ConfigError(
                f"{out.parent}: is a file, and new runs get a folder there; give another with --out"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{out}: cannot make the run folder: {error.strerror}; give another with --out"
            ) from error
        return number
    raise AssertionError("numbers do not end")


def _numbered(config: TrainConfig, number: int) -> Path:
    task = config.target or config.task_name
    what = config.recipe or f"{Path(config.space).stem}-{config.weighter}"
    name = f"{plain_name(task)}-{plain_name(what)}-seed{config.seed}".replace(":", "-")
    return Path("runs", name if number == 1 else f"{name}-{number}")
