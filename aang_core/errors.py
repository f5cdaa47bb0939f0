"""Every exception that AANG raises on purpose, and words for those that plug-ins raise.

Every message says what was wrong, where (file, line, column, option or name) and what to do about
it. The command line prints such an error without a traceback and exits with status 2.
"""

import os
import sys
import traceback
from pathlib import Path
from types import FrameType

_OURS = ("aang_core", "aang", "aang_testing")
_STDLIB = Path(os.__file__).parent
# If a plug-in calls one of these wrongly, the line of the call is more useful than their own line.
_CALLED = {
    *("torch", "numpy", "transformers", "tokenizers", "datasets", "sklearn"),
    *("pluggy", "hypothesis"),
}


class AangError(Exception):
    """Base class of every exception that AANG raises on purpose.

    Examples:
        >>> from aang_core import AangError, Objective, load_plugins
        >>> try:
        ...     Objective.parse("task/bert-op", load_plugins().registry)
        ... except AangError as error:
        ...     print("refused:", type(error).__name__)
        refused: ConfigError
    """


class DataError(AangError):
    """A file of the user cannot be used: it is missing, malformed, empty or inconsistent."""


class ModelError(AangError):
    """A model folder or hub name cannot be loaded as an encoder."""


class ConfigError(AangError):
    """An option, a configuration file or a space file is wrong."""


class UnknownNameError(AangError):
    """No plug-in registers a primitive, weighter, space or plug-in of this name."""


class AmbiguousNameError(AangError):
    """Two plug-ins register this short name; ``distribution:name`` picks one."""


class PluginError(AangError):
    """A plug-in cannot be loaded, or breaks the contract of its stage."""


class WeighterError(PluginError):
    """A weighter asks its workbench for something impossible."""


class StorageError(AangError):
    """A file cannot be written, for example because the disk is full or read-only."""


class LockedError(AangError):
    """Another process is writing to the folder."""


class NumericalError(AangError):
    """A loss or a gradient is NaN or infinite."""


class SharedError(AangError):
    """One process of a training cannot continue, so all of them end; the first one says so."""


class OutOfMemoryError(AangError):
    """A step does not fit into memory, even with one row at a time.

    Attributes:
        rows: how many rows of a step went through the body at once; None outside of a step.
        least: how many of them must stay together.
    """

    def __init__(
        self,
        message: str,
        *,
        rows: int | None = None,
        least: int = 1,
    ) -> None:
        super().__init__(message)
        self.rows = rows
        self.least = least


def text_of(error: BaseException) -> str:
    """The message of an exception on one line; computing it may raise, too."""
    try:
        return " ".join(str(error).split())
    except Exception:
        return "(its message cannot be shown)"


def place_of(error: BaseException) -> str:
    """``FILE:LINE, in FUNCTION`` of the plug-in's innermost frame; empty if there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_of_plugin(frame.filename):
            where = f", in {frame.name}" if not frame.name.startswith("<") else ""
            return f"{frame.filename}:{frame.lineno}{where}"
    return ""


def raised(error: BaseException) -> str:
    """``raised KIND: MESSAGE at PLACE``, on one line."""
    place = place_of(error)
    return f"raised {type(error).__name__}: {text_of(error)}{f' at {place}' if place else ''}"


def call_of_plugin(error: BaseException) -> tuple[FrameType, FrameType] | None:
    """The call of a plug-in in which it, or a library that it called, raised an exception.

    Returns:
        The frame of the plug-in's function, and that of ours which called it; None if our own code
        raised the exception.
    """
    called: FrameType | None = None
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if _is_of_plugin(frame.f_code.co_filename):
            called = frame
        elif _is_ours(Path(frame.f_code.co_filename)):
            return None if called is None else (called, frame)
    return None


def _is_of_plugin(filename: str) -> bool:
    """Whether a frame is outside the import machinery, the core, the stdlib and large libraries."""
    if filename.startswith("<"):
        return False
    path = Path(filename)
    if "site-packages" in path.parts:
        package = path.parts[path.parts.index("site-packages") + 1]
        return package not in _CALLED and not _is_ours(path)
    return not (_is_ours(path) or path.is_relative_to(_STDLIB))


def _is_ours(path: Path) -> bool:
    """Whether a file belongs to the core, to the text application or to the checks of plug-ins."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _OURS]
    return any(path.is_relative_to(Path(file).parent) for file in files if file)
