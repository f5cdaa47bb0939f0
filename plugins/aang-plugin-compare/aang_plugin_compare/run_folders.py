"""The folder of a comparison or a search, and the state of the runs in it."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from aang.config import (
    TrainConfig,
    left_to_the_data,
    recorded_config,
    with_absolute_paths,
    without_default_recipe,
)
from aang.runs import refuse_links

from aang_core import AangError, ConfigError, Registry
from aang_core.storage import RunFolder
from aang_plugin_compare.cells import Comparison, matched
from aang_plugin_compare.control_results import QUICK_CONTROLS, asked_of, read_result, result_file

State = Literal["finished", "interrupted", "new"]


def run_state(folder: Path, config: TrainConfig, registry: Registry) -> State:
    """Whether the run in a folder is finished, interrupted or new.

    Args:
        folder: the run folder.
        config: the options that the run should have.
        registry: where the default space and weighter are looked up.

    Raises:
        ConfigError: the folder holds a run with different options.
    """
    if not (folder / "config.yaml").is_file():
        return "new"
    there = recorded_config(folder / "config.yaml", registry)
    asked = with_absolute_paths(_settled(config, there, registry)).model_dump(exclude={"out"})
    recorded = with_absolute_paths(there).model_dump(exclude={"out"})
    if differing := [name for name in asked if asked[name] != recorded[name]]:
        raise ConfigError(
            f"{folder}: this run differs in {' and '.join(differing)}. Remove it, or give another "
            "folder with --out"
        )
    return "finished" if (folder / "result.json").is_file() else "interrupted"


def newer(places: Iterable[str | Path], written: Path) -> Iterator[str]:
    """The absolute paths and globs among ``places`` that changed after a file was written."""
    began = written.stat().st_mtime
    for place in map(Path, places):
        root = Path(place.anchor)
        for path in root.glob(str(place.relative_to(root))) if place.is_absolute() else ():
            files = [file for file in (path, *path.rglob("*")) if file.is_file()]
            if any(file.stat().st_mtime > began for file in files):
                yield str(path)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a run that will not be resumed.

    Otherwise the newest one stays, as large as three models, and larger with the objectives' own
    heads. If it cannot be removed, that does no harm.

    Args:
        folder: the run folder.
    """
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _settled(config: TrainConfig, there: TrainConfig, registry: Registry) -> TrainConfig:
    """The options, with those that a run settles itself taken from the recorded run."""
    if there.recipe is None:
        config = without_default_recipe(config, registry) or config
    # A run has the default recipe or no recipe, so another one is a difference.
    chosen = left_to_the_data(config) - {"recipe", "space", "weighter"}
    if config.precision == "auto":
        chosen.add("precision")
    return config.model_copy(update={name: getattr(there, name) for name in chosen})


def make_root(root: Path) -> None:
    """Make the folder of a comparison or a search, with its folder ``runs``, if there is none.

    Raises:
        ConfigError: it cannot be made, or holds something else.
        DataError: a link in it points outside.
    """
    if root.is_dir() and any(root.iterdir()) and not (root / "runs").is_dir():
        RunFolder.check_free(root)
    refuse_links(root)
    try:
        (root / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {root}: cannot make the folder: {error}") from error


def left_out(comparison: Comparison, root: Path, registry: Registry) -> dict[Path, str]:
    """The finished runs and quick controls that do not belong to the comparison, with reasons.

    Args:
        comparison: the comparison.
        root: its folder.
        registry: where the default space and weighter are looked up.

    Returns:
        The reasons by the folders of the runs and the files of the controls, relative to ``root``.

    Raises:
        DataError: the result of a control is damaged.
    """
    found = {}
    for cell in comparison.finished(root):
        try:
            run_state(root / cell.folder, matched(cell, root), registry)
        except AangError as error:
            found[cell.folder] = str(error)
    for cell in comparison.leading():
        for name in QUICK_CONTROLS:
            path = result_file(root, cell.task, name, cell.seed)
            result = read_result(path)
            if result is not None and result.asked != asked_of(cell.config, name):
                found[path.relative_to(root)] = (
                    f"{path}: was computed with other options; aang compare computes it again "
                    "without --table-only"
                )
    return found
