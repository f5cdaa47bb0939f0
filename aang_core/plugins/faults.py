"""Errors of plug-ins: whether an exception comes from one, from which line, and in which words."""

import os
import sys
import traceback
from pathlib import Path

_OURS = ("aang_core", "aang", "aang_testing")
_STDLIB = Path(os.__file__).parent
# If a plug-in calls one of these wrongly, the line of the call is more useful than their own line.
_CALLED = {
    *("torch", "numpy", "transformers", "tokenizers", "datasets", "sklearn"),
    *("pluggy", "hypothesis"),
}


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


def raised_by_plugin(error: BaseException) -> bool:
    """Whether a plug-in's code raised it, or a library that the plug-in called."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_of_plugin(frame.filename):
            return True
        if _is_ours(Path(frame.filename)):
            return False
    return False


def _is_of_plugin(filename: str) -> bool:
    """Whether a frame belongs to none of the import machinery, core, stdlib and large libraries."""
    if filename.startswith("<"):
        return False
    path = Path(filename)
    if "site-packages" in path.parts:
        package = path.parts[path.parts.index("site-packages") + 1]
        return package not in _CALLED and not _is_ours(path)
    return not (_is_ours(path) or path.is_relative_to(_STDLIB))


def _is_ours(path: Path) -> bool:
    """Whether a file is of the core, of the text application or of the checks of plug-ins."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _OURS]
    return any(path.is_relative_to(Path(file).parent) for file in files if file)
