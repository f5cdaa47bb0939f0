"""A folder in which one file at a time is replaced."""

from collections.abc import Callable, Sequence
from pathlib import Path


def with_another_file(
    folder: Path, names: Sequence[str], use: Callable[[], None]
) -> Callable[[Path], None]:
    """A check of inputs whose first line names a file in a folder; the other lines are its content.

    Args:
        folder: the folder, which is restored after each check.
        names: its files that may be replaced; an input that names none of them is skipped.
        use: reads the folder while the file is replaced.
    """
    whole = {name: (folder / name).read_bytes() for name in names}

    def check(path: Path) -> None:
        name, _, content = path.read_bytes().partition(b"\n")
        known = name.decode("latin-1")
        if known not in whole:
            return
        (folder / known).write_bytes(content)
        try:
            use()
        finally:
            (folder / known).write_bytes(whole[known])

    return check
