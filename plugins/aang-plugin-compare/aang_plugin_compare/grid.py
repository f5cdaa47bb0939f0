"""The grid of a comparison, whose values are chosen on dev, and what a grid or search may name."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import AangError, ConfigError, Primitive, Registry, did_you_mean
from aang_core.storage import Source
from aang_plugin_compare.settings import given_names, option_name

Grid = Mapping[str, Sequence[Any]]
"""Values by option; ``NAME.OPTION`` is an option of a weighter or primitive."""

Owners = Mapping[str, Primitive | None]
"""What may have options in a run, by name; see ``aang.assembly.option_owners``."""


def read_grid(grid: str | Grid, source: Source, registry: Registry) -> Grid:
    """The grid that a comparison file names or holds.

    Raises:
        ConfigError: it is unknown, or an option has no value; the message names the line.
    """
    if isinstance(grid, str):
        try:
            return registry.grids.find(grid).options
        except AangError as error:
            raise ConfigError(f"{source.at(('grid',))}: {error}") from error
    for option, values in grid.items():
        if not values:
            raise ConfigError(f"{source.at(('grid', option))}: {option} has no value to try")
    return grid


def names_owners(grid: Grid) -> bool:
    """Whether it has options of weighters or primitives, so that one must know who uses them."""
    return any("." in name for name in grid)


def used_of(grid: Grid, owners: Owners) -> Grid:
    """The part of the grid that applies to a run with these owners of options."""
    return {
        name: values
        for name, values in grid.items()
        if "." not in name or name.rpartition(".")[0] in owners
    }


def refuse_unused(grid: Grid, owners: Owners, source: Source) -> None:
    """Check that some method uses each option of weighters and primitives.

    Args:
        grid: the grid.
        owners: those of all methods together.
        source: where the grid comes from.

    Raises:
        ConfigError: no method uses one; the message names the line.
    """
    for name in grid:
        if "." in name:
            refuse_unowned(name, owners, f"{source.at(('grid', name))}: {name} is in the grid")


def refuse_unowned(name: str, owners: Owners, what: str) -> None:
    """Check that ``NAME.OPTION`` is an option of something that a run uses.

    Args:
        name: the option.
        owners: what has options in any of the runs.
        what: the beginning of the message.

    Raises:
        ConfigError: it is not.
    """
    owner, _, option = name.rpartition(".")
    if owner not in owners:
        hint = did_you_mean(owner, owners, "they use")
        raise ConfigError(f"{what}, but no run uses a primitive or weighter {owner!r}; {hint}")
    primitive = owners[owner]
    if primitive is None:
        return
    takes = inspect.signature(primitive.load()).parameters
    if option not in takes and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        hint = did_you_mean(option, takes, "it takes")
        raise ConfigError(
            f"{what}, but {primitive.stage} {primitive} has no option {option!r}; {hint}"
        )


def refuse_fixed(grid: Grid, methods: Mapping[str, Mapping[str, Any]], source: Source) -> None:
    """Check that no method has a value of its own for an option of the grid.

    Raises:
        ConfigError: one has; the message names the line.
    """
    for method, options in methods.items():
        own = given_names(options)
        for name in grid:
            if option_name(name) in own:
                raise ConfigError(
                    f"{source.at(('grid', name))}: {name} is in the grid, and has a fixed value in "
                    f"the method {method}; leave one of them out"
                )
