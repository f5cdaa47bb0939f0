"""The runs of one method, one for each seed."""

from collections.abc import Mapping
from pathlib import Path

import click
from aang import Run

from aang_core import AangError


def finished_runs(folder: Path) -> Mapping[str, Run]:
    """The runs in folders ``seed-*``, by the folder's name and in the order of the seeds.

    Raises:
        click.ClickException: there are none, or one is not finished or cannot be read.
    """
    seeds = sorted(folder.glob("seed-*"), key=lambda path: (len(path.name), path.name))
    if not seeds:
        raise click.ClickException(f"{folder}: has no folder seed-*")
    try:
        return {path.name: Run.open(path) for path in seeds}
    except AangError as error:
        raise click.ClickException(str(error)) from error
