"""Text that a task offers to all methods, and that only some of them read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aang.assembly import without_unread_text

from aang_core import ConfigError, Registry
from aang_plugin_compare.cells import Cell

_TEXT = ("domain", "out_of_domain", "unlabelled")


def with_text_that_is_read(
    cells: Sequence[Cell],
    methods: Mapping[str, Mapping[str, Any]],
    registry: Registry,
    place: Callable[[str, str, str], str],
) -> list[Cell]:
    """The runs, each with those of ``domain``, ``out-of-domain`` and ``unlabelled`` that it reads.

    Args:
        cells: the runs.
        methods: the options of each method, as they were given.
        registry: where names are looked up.
        place: the line where an option was given, for a task and a method.

    Raises:
        ConfigError: a method names text that it does not read, or no method reads a task's text.
    """
    reading = [replace(cell, config=without_unread_text(cell.config, registry)) for cell in cells]
    for option in _TEXT:
        read = {cell.task for cell in reading if getattr(cell.config, option)}
        for before, after in zip(cells, reading, strict=True):
            if getattr(before.config, option) == getattr(after.config, option):
                continue
            own = option in {name.replace("-", "_") for name in methods[before.method]}
            if own or before.task not in read:
                where = place(option, before.task, before.method)
                who = f"method {before.method} does not read" if own else "no method reads"
                raise ConfigError(f"{where}: {option.replace('_', '-')}: {who} it; leave it out")
    return reading
