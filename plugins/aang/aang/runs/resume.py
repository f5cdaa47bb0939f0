"""The folder of a run: chooses and locks a new one, or reopens that of an interrupted run.

Importing this module imports no torch.
"""

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang.config import TrainConfig, recorded_config
from aang.corpora.places import PARTS, plain_name
from aang_core.errors import AangError, ConfigError, DataError, LockedError, OutOfMemoryError
from aang_core.plugins.registry import Registry
from aang_core.storage.lock import locked, refuse_if_locked
from aang_core.storage.run_folder import MANIFEST, RunFolder

if TYPE_CHECKING:
    from aang_core.tasks.processes import Processes

TEXTS = ("unlabelled", "domain")
"""Options that name texts without labels, in any number of files."""


def resume_command(out: Path, *options: str) -> str:
    """The command that resumes the run in ``out``, with ``options``."""
    return shlex.join(["aang", "train", "--resume", str(out), *options])


def check_unfinished(out: Path) -> None:
    """Check that the run in ``out`` can be resumed.

    Raises:
        ConfigError: ``out`` is not a run folder, or the run has finished.
    """
    if not (out / "config.yaml").is_file():
        raise ConfigError(f"--resume {out}: is not a run folder, it has no config.yaml")
    if (out / "result.json").is_file():
        raise ConfigError(f"--resume {out}: the run has finished; there is nothing to resume")


def check_free(out: Path) -> None:
    """Check that a new run can be written to ``out``.

    Raises:
        ConfigError: ``out`` is not empty; the message says how to continue an interrupted run.
        LockedError: another process is writing in ``out``.
    """
    try:
        RunFolder.check_free(out)
    except ConfigError as error:
        if (out / "config.yaml").is_file() and not (out / "result.json").is_file():
            error.add_note(f"The run there did not finish. To go on:\n    {resume_command(out)}")
        raise


def unfinished(out: Path, registry: Registry, **over: Any) -> TrainConfig:
    """The configuration of the interrupted run in ``out``.

    If the folder was moved or renamed, options that name its copies of data in memory are changed
    to the copies in ``out``.

    Args:
        out: the run folder.
        registry: where the options of plug-ins are looked up.
        **over: options that override it for the rest of the run.

    Raises:
        ConfigError: ``out`` is not a run folder, or the run has finished.
        LockedError: the run is still running.
    """
    check_unfinished(out)
    refuse_if_locked(out)
    config = recorded_config(out / "config.yaml", registry, **over, out=out)

    def here(name: str, place: str | Path) -> str | Path:
        recorded = Path(place)
        own = out.absolute() / "data" / recorded.name
        is_copy = recorded.is_absolute() and recorded.match(f"data/{name}.json*")
        return own if is_copy and own.is_file() and not recorded.exists() else place

    parts = {name: here(name, path) for name in PARTS if (path := getattr(config, name))}
    texts = {name: tuple(str(here(name, p)) for p in getattr(config, name)) for name in TEXTS}
    return config.model_copy(update={**parts, **texts})


def copy_of(name: str) -> str:
    """The file with the copy of an option's data in memory, relative to the run folder.

    In-domain text is an array: each row of an array is a text, where a line may hold paragraphs.
    """
    return f"data/{name}.json" if name == "domain" else f"data/{name}.jsonl"


@contextmanager
def new_run_folder(config: TrainConfig, processes: "Processes") -> Iterator[Path]:
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
        check_free(config.out)
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
            with suppress(OSError):  # fails if the run is in it
                out.rmdir()


def _take(config: TrainConfig) -> int:
    """Create the first folder that does not exist, and return its number."""
    number = 1
    while True:
        out = _numbered(config, number)
        try:
            out.mkdir(parents=True)
            return number
        except FileExistsError:
            number += 1
        except OSError as error:
            raise ConfigError(
                f"{out}: cannot make the run folder: {error.strerror}; give another with --out"
            ) from error


def _numbered(config: TrainConfig, number: int) -> Path:
    task = config.target or config.task_name
    what = config.recipe or f"{Path(config.space).stem}-{config.weighter}"
    name = f"{plain_name(task)}-{plain_name(what)}-seed{config.seed}".replace(":", "-")
    return Path("runs", name if number == 1 else f"{name}-{number}")


@contextmanager
def opened(
    out: Path,
    *,
    resume: bool,
    processes: "Processes",
    place: str = ".",
    command: Callable[..., str] = resume_command,
    save_memory: bool = False,
) -> Iterator[RunFolder]:
    """Open and lock a run folder.

    If an error leaves a run that can be resumed, the error gets a note with the command. A new
    folder is removed if nothing could be written to it. With several processes, the first one
    creates the folder and writes to it.

    Args:
        out: the folder.
        resume: whether to continue an interrupted run in it.
        processes: the processes that share the run.
        place: the folder in ``out`` that holds what is recorded.
        command: makes the command that resumes what is in ``out``, with further options.
        save_memory: whether activations are already recomputed.
    """
    from aang.runs.memory import lowered, running_out_told

    folder = RunFolder(out / place, writes=processes.first)

    def how_to_go_on(error: AangError) -> str:
        kept = any(out.rglob(f"checkpoints/*/{MANIFEST}"))
        so_far = "What was trained is kept." if kept else "No step has been saved yet."
        options: tuple[str, ...] = ()
        if isinstance(error, OutOfMemoryError):
            options = lowered(error, save_memory=save_memory)
        return f"{so_far} To go on:\n    {command(out, *options)}"

    if not processes.first:
        processes.wait()
        try:
            with running_out_told():
                yield folder
        except OutOfMemoryError as error:
            # The first process learns only that this one has died.
            error.add_note(how_to_go_on(error))
            raise
        return
    existed = out.is_dir()
    new = not resume and not (existed and any(out.iterdir()))
    if not resume:
        RunFolder.create(folder.path)
    try:
        with locked(folder.path), running_out_told():
            if resume:
                check_unfinished(folder.path)
            processes.wait()
            yield folder
    except LockedError:
        raise
    except AangError as error:
        if resume and isinstance(error, DataError):
            raise  # this version cannot resume what is there, so no command is offered
        if (folder.path / "config.yaml").is_file():
            error.add_note(how_to_go_on(error))
        elif new:
            shutil.rmtree(out, ignore_errors=True)
            if existed:
                out.mkdir(exist_ok=True)
        raise
