"""The folder for results that are expensive to compute again, and atomic writes into it."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from aang_core.errors import ConfigError
from aang_core.storage.durable import whole_file


def cache_folder() -> Path:
    """The folder of all of AANG's caches, which exists.

    It is ``AANG_CACHE`` if that is set, otherwise ``aang`` in the platform's cache folder, such as
    ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        ConfigError: it cannot be written to, or would be in a home folder, and there is none.

    Examples:
        >>> import os
        >>> from aang import cache_folder
        >>> os.environ["AANG_CACHE"] = "my-cache"
        >>> cache_folder().name
        'my-cache'
    """
    return make_folder(chosen_cache_folder())


def chosen_cache_folder() -> Path:
    """The folder that the user or the platform has chosen; it may not exist, or be unusable.

    Raises:
        ConfigError: it would be in a home folder, and there is none.
    """
    chosen = os.environ.get("AANG_CACHE")
    unknown = "there is no home folder to cache token ids in: set AANG_CACHE to a folder, or HOME"
    if chosen:
        unknown = f"AANG_CACHE={chosen}: there is no such home folder; give the whole path"
    try:
        if chosen:
            return Path(chosen).expanduser()
        folder = platformdirs.user_cache_path("aang", appauthor=False, opinion=False)
    except RuntimeError as error:
        raise ConfigError(unknown) from error
    # In earlier versions of platformdirs, "~" would be a folder in the current one.
    if not folder.is_absolute():
        raise ConfigError(unknown)
    return folder


def make_folder(folder: Path) -> Path:
    """Create ``folder`` and its missing parents, and return it.

    Raises:
        ConfigError: the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        reason = "it is read-only"
    except OSError as error:
        reason = error.strerror or str(error)
    raise ConfigError(
        f"{folder}: AANG cannot write its cache there ({reason}). "
        "Set AANG_CACHE to a folder that can be written to and has space."
    )


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file replaces ``path`` when the block succeeds.

    Readers see the old file or the new one, never a part of one. If two processes write the same
    file at once, the last one wins. If the block fails, nothing is left behind.

    Raises:
        ConfigError: the folder of ``path`` cannot be created or written to.

    Examples:
        >>> from pathlib import Path
        >>> from aang import atomic_write
        >>> with atomic_write(Path("texts/sampled.txt")) as draft:
        ...     characters = draft.write_text("hello")
        >>> Path("texts/sampled.txt").read_text()
        'hello'
    """
    make_folder(path.parent)
    with whole_file(path, shared=True) as draft:
        yield draft


def cached_text(name: str, content: str) -> Path:
    """Write text to a file of the cache, which data primitives can read, and return its path."""
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    # The name stays: streams remember it, and a resumed run reads a copy of that name.
    path = cache_folder() / digest / name
    if not path.exists():
        with atomic_write(path) as draft:
            draft.write_text(content, encoding="utf-8")
    return path
