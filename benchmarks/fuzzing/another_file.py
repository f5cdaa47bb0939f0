"""A folder in which one file at a time is another."""

from collections.abc import Callable, Sequence
from pathlib import Path


def with_another_file(
    folder: Path, names: Sequence[str], use: Callable[[], None]
) -> Callable[[Path], None]:
    """A check of files that hold the name of one in a folder, and in the lines below its content.

    Args:
        folder: the folder, which is as before after each check.
        names: its files that may be replaced; a file that names none of them is passed over.
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
