"""Opens the folder of a new or a resumed run."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aang.runs.unfinished import check_unfinished, resume_command
from aang_core.errors import AangError, DataError, LockedError, OutOfMemoryError
from aang_core.storage.checkpoint_store import MANIFEST
from aang_core.storage.lock import locked
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
        try:
            with running_out_told():
                yield RunFolder(out, writes=False)
        except OutOfMemoryError as error:
            # The first process hears only that this one has died.
            error.add_note(_how_to_go_on(out, error))
            raise
        return
    existed = out.is_dir()
    new = not resume and not (existed and any(out.iterdir()))
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
            error.add_note(_how_to_go_on(out, error))
        elif new:
            shutil.rmtree(out, ignore_errors=True)
            if existed:
                out.mkdir(exist_ok=True)
        raise


def _how_to_go_on(out: Path, error: AangError) -> str:
    kept = any(out.rglob(f"checkpoints/*/{MANIFEST}"))
    so_far = "What was trained is kept." if kept else "No step has been saved yet."
    options = error.go_on_with if isinstance(error, OutOfMemoryError) else ()
    return f"{so_far} To go on:\n    {resume_command(out, *options)}"
