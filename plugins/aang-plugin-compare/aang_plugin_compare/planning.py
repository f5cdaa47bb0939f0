"""Planning the runs that a comparison file asks for."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aang.assembly import option_owners
from aang.config import TrainConfig, refuse_trust, resolve_training

from aang_core import AangError, ConfigError, Registry, load_space
from aang_core.storage import NumberLoader, Source, parse_yaml
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.comparison_file import ComparisonFile, read_content
from aang_plugin_compare.controls import Control, controls_of
from aang_plugin_compare.grid import (
    Grid,
    Owners,
    names_owners,
    read_grid,
    refuse_fixed,
    refuse_unused,
    used_of,
)
from aang_plugin_compare.matching import Match
from aang_plugin_compare.offered_text import with_text_that_is_read
from aang_plugin_compare.same_rows import refuse_own_rows, with_train_rows
from aang_plugin_compare.settings import (
    PUSHING,
    WHY_NOT_PUSHED,
    layered,
    setting_text,
    with_setting,
)

_NOT_OF_ONE_RUN = {
    "out": "every run has a folder of its own",
    "seed": "every method has the same seeds; give them under seeds",
    **dict.fromkeys(PUSHING, WHY_NOT_PUSHED),
}


def read_comparison(
    path: Path,
    registry: Registry,
    *,
    seeds: int | None = None,
    baseline: str | None = None,
    grid: str | None = None,
    train_rows: int | None = None,
) -> Comparison:
    """Read a comparison file and plan its runs.

    Args:
        path: the file.
        registry: where weighters, spaces and grids are looked up.
        seeds: number of seeds, from 0 on; replaces those of the file.
        baseline: replaces that of the file.
        grid: name of a grid; replaces that of the file.
        train_rows: number of training rows that each seed draws; replaces that of the file.

    Raises:
        ConfigError: the file cannot be read or is not a comparison; the message names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the comparison {path} cannot be read: {error.strerror}") from error
    value, source = parse_yaml(content, str(path), NumberLoader)
    over = {"seeds": list(range(seeds)) if seeds else None, "baseline": baseline, "grid": grid}
    if isinstance(value, Mapping):
        value = {**value, **{name: given for name, given in over.items() if given is not None}}
    return plan(value, source, registry, train_rows=train_rows)


def plan(
    value: object, source: Source, registry: Registry, *, train_rows: int | None = None
) -> Comparison:
    """Plan every run of a comparison, with its options and names checked.

    Args:
        value: the content of a comparison file.
        source: where it comes from, for messages.
        registry: where weighters, spaces and grids are looked up.
        train_rows: number of training rows that each seed draws; replaces that of ``value``.

    Raises:
        ConfigError: it is not a comparison; the message names the line.
    """
    given = read_content(value, source)
    grid = read_grid(given.grid, source, registry)
    _refuse_what_no_run_has(given, grid, source)
    refuse_own_rows(grid, given.methods, source)
    if train_rows is not None:
        given = given.model_copy(update=with_train_rows(given.tasks, given.options, train_rows))
    controls, methods = controls_of(given.methods, source)
    given = given.model_copy(update={"methods": methods})
    _refuse_too_many(given, grid, source)
    owners = {
        (task, method): _owners(given, task, method, grid, source, registry)
        for task in given.tasks
        for method in given.methods
    }
    refuse_fixed(grid, given.methods, source)
    refuse_unused(grid, {name: o for of in owners.values() for name, o in of.items()}, source)
    cells = [
        cell
        for (task, method), of in owners.items()
        for cell in _cells(given, task, method, used_of(grid, of), source, registry)
    ]
    _check_names(cells, given, source, registry)
    place = partial(_place, given, source)
    cells = with_text_that_is_read(cells, given.methods, registry, place)
    cells = [_matched(cell, controls, cells, source) for cell in cells]
    return Comparison(list(given.tasks), list(given.methods), given.baseline, cells)


def _matched(
    cell: Cell, controls: Mapping[str, Control], cells: Sequence[Cell], source: Source
) -> Cell:
    """The cell with the runs that its compute or seconds come from, if it is such a control."""
    control = controls[cell.method]
    if control.what is None:
        return cell
    where = f"{source.at(('methods', cell.method))}: method {cell.method}"
    beside = [c for c in cells if (c.task, c.seed) == (cell.task, cell.seed)]
    of = [c for c in beside if c.method == control.of]
    if cell.choice is not None or len(of) != 1:
        raise ConfigError(
            f"{where}: gets as much as a run of {control.of} takes, but with a grid there are "
            "several; leave the grid out"
        )
    if control.what == "compute":
        return replace(cell, match=Match("compute", of[0].folder))
    same = [c for c in beside if controls[c.method].what is None and c.config == cell.config]
    if not same:
        raise ConfigError(
            f"{where}: its number of steps follows from the seconds per step of a method with the "
            "same options, but there is none; add one, and name it here with 'as:'"
        )
    return replace(cell, match=Match("seconds", of[0].folder, same[0].folder))


MOST_RUNS = 10_000
"""The largest number of runs of a comparison; a typo in a grid can ask for millions."""


def _refuse_too_many(given: ComparisonFile, grid: Grid, source: Source) -> None:
    settings = math.prod(len(values) for values in grid.values())
    runs = len(given.tasks) * len(given.methods) * len(given.seeds) * settings
    if runs > MOST_RUNS:
        raise ConfigError(
            f"{source.at(())}: asks for up to {runs} runs; the most is {MOST_RUNS}, so leave "
            "tasks, methods, seeds or values of the grid out"
        )


def _check_names(
    cells: Sequence[Cell], given: ComparisonFile, source: Source, registry: Registry
) -> None:
    """Look up what the methods name, so that a typo is reported before anything runs."""
    for cell in {(cell.task, cell.method): cell for cell in cells}.values():
        for option, look_up in (("weighter", registry.weighter), ("space", _space_in(registry))):
            # Auxiliary tasks define a space, and other spaces may list them.
            if option == "space" and cell.config.aux_task:
                continue
            try:
                look_up(getattr(cell.config, option))
            except AangError as error:
                where = _place(given, source, option, cell.task, cell.method)
                raise ConfigError(f"{where}: method {cell.method}: {error}") from error


def _space_in(registry: Registry) -> Callable[[str], object]:
    return lambda name: load_space(name, registry)


def _refuse_what_no_run_has(given: ComparisonFile, grid: Grid, source: Source) -> None:
    """Refuse options that the runs of a comparison cannot have each for itself."""
    places: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [
        (("options",), given.options),
        (("grid",), grid),
        *((("tasks", name), of) for name, of in given.tasks.items()),
        *((("methods", name), of) for name, of in given.methods.items()),
    ]
    for place, options in places:
        for name in options:
            if why := _NOT_OF_ONE_RUN.get(name.replace("-", "_")):
                raise ConfigError(f"{source.at((*place, name))}: {name}: {why}")


def _owners(
    given: ComparisonFile, task: str, method: str, grid: Grid, source: Source, registry: Registry
) -> Owners:
    """What may have options in the runs of a method on a task; empty if the grid does not ask."""
    options = layered(given.options, given.tasks[task], given.methods[method])
    config = _resolved(options, given, source, task, method, registry)
    if not names_owners(grid):
        return {}
    try:
        return option_owners(config, registry)
    except AangError as error:
        where = source.at(("methods", method))
        raise ConfigError(f"{where}: method {method}: {error}") from error


def _cells(
    given: ComparisonFile,
    task: str,
    method: str,
    used: Grid,
    source: Source,
    registry: Registry,
) -> Iterator[Cell]:
    options = layered(given.options, given.tasks[task], given.methods[method])
    for choice, values in enumerate(itertools.product(*used.values())):
        setting = dict(zip(used, values, strict=True))
        for seed in given.seeds:
            config = _resolved(
                {**with_setting(options, setting), "seed": seed},
                given,
                source,
                task,
                method,
                registry,
            )
            yield Cell(
                task,
                method,
                seed,
                config,
                choice if used else None,
                setting_text(setting),
            )


def _resolved(
    options: Mapping[str, Any],
    given: ComparisonFile,
    source: Source,
    task: str,
    method: str,
    registry: Registry,
) -> TrainConfig:
    refuse_trust(options, _place(given, source, "trust_remote_code", task, method))
    try:
        return resolve_training(options, {}, registry)
    except AangError as error:
        wrong = next((n for n in options if _concerns(str(error), n)), "")
        where = _place(given, source, wrong, task, method)
        raise ConfigError(f"{where}: method {method} on task {task}: {error}") from error


def _concerns(message: str, option: str) -> bool:
    return message.startswith((f"--{option.replace('_', '-')} ", f"{option.replace('-', '_')}:"))


def _place(given: ComparisonFile, source: Source, option: str, task: str, method: str) -> str:
    """The line of an option, wherever it was given, or else the line of the method."""
    places: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [
        (("methods", method), given.methods[method]),
        (("tasks", task), given.tasks[task]),
        (("options",), given.options),
    ]
    for place, part in places:
        for name in part:
            if name.replace("-", "_") == option.replace("-", "_"):
                return source.at((*place, name))
    return source.at(("methods", method))
