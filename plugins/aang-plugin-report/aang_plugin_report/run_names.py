"""Names that tell runs apart."""

import os
from collections.abc import Sequence
from pathlib import Path

from aang import Run


def run_names(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders; if two are alike, as much of their paths as differs.

    The runs of a comparison with one seed, for example, are all called ``seed-0``.
    """
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return names
    folders = [run.folder.absolute() for run in runs]
    common = Path(os.path.commonpath(folders))
    apart = [str(folder.relative_to(common)) for folder in folders]
    return [name if part == "." else part for name, part in zip(names, apart, strict=True)]
