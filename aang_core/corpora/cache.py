"""Where AANG keeps what is dear to compute again, and how files get there whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from aang_core.errors import ConfigError
from aang_core.storage.durable import whole_file


def cache_folder() -> Path:
    """The folder of all of AANG's caches; it need not exist yet.

    ``AANG_CACHE`` if that is set, else ``aang`` in the platform's folder for caches, such as
    ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    chosen = os.environ.get("AANG_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("aang", appauthor=False, opinion=False)


def make_folder(folder: Path) -> Path:
    """Create ``folder`` and its parents where they are missing; returns ``folder``.

    Raises:
        ConfigError: the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise unusable(folder, PermissionError("it is read-only"))
    return folder


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to, whose file takes the place of ``path`` when the block succeeds.

    Readers see the old file or the new one and never half of it, and of two processes that write
    the same file at once the later one wins. When the block fails, nothing is left behind.

    Raises:
        ConfigError: the folder of ``path`` cannot be created or written to.
    """
    make_folder(path.parent)
    with whole_file(path, shared=True) as draft:
        yield draft


def unusable(folder: Path, error: OSError) -> ConfigError:
    """The error to raise when writing into the cache ``folder`` failed with ``error``."""
    reason = error.strerror or str(error)
    return ConfigError(
        f"{folder}: AANG cannot write its cache there ({reason}). "
        "Set AANG_CACHE to a folder that can be written to and has space."
    )
