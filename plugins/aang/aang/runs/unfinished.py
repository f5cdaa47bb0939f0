"""Which run folders can be resumed, and how. Nothing here imports torch."""

import shlex
from pathlib import Path
from typing import Any

from aang.config import TrainConfig, recorded_config
from aang.runs.kept_data import with_own_copies
from aang_core.errors import ConfigError
from aang_core.storage.lock import refuse_if_locked


def resume_command(out: Path, *options: str) -> str:
    """The command that resumes the run in ``out``, with ``options``."""
    return shlex.join(["aang", "train", "--resume", str(out), *options])


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
