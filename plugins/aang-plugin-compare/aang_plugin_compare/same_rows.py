"""Every method of a comparison trains on the same rows, which the seed draws."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aang.runs import recorded_draw

from aang_core import ConfigError
from aang_core.storage import Source
from aang_plugin_compare.control_results import read_result
from aang_plugin_compare.controls import Options

_OPTION = "train_rows"


def refuse_own_rows(
    grid: Mapping[str, Any], methods: Mapping[str, Options], source: Source
) -> None:
    """Check that no method and no grid sets its own number of training rows.

    Raises:
        ConfigError: one does; the message names the line.
    """
    places: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [(("grid",), grid)]
    places += [(("methods", name), options) for name, options in methods.items()]
    for place, options in places:
        for name in filter(_is_option, options):
            raise ConfigError(
                f"{source.at((*place, name))}: {name}: all methods train on the same rows; "
                "give it under options or tasks"
            )


def with_train_rows(
    tasks: Mapping[str, Options], options: Options, size: int
) -> dict[str, dict[str, Any]]:
    """``tasks`` and ``options`` of a comparison, with ``size`` drawn rows for every task."""
    return {
        "tasks": {name: {**_without(of), _OPTION: size} for name, of in tasks.items()},
        "options": _without(options),
    }


def check_same_rows(runs: Sequence[Path], controls: Sequence[Path]) -> None:
    """Check that the runs and controls of one task and seed have drawn the same training rows.

    Args:
        runs: folders of runs.
        controls: files with results of controls.

    Raises:
        ConfigError: two of them differ, so their scores cannot be compared.
        DataError: the record of a run or control is damaged.
    """
    digests: dict[Path, str | None] = {}
    for folder in runs:
        draw = recorded_draw(folder)
        digests[folder] = None if draw is None else draw.digest
    for path in controls:
        result = read_result(path)
        digests[path] = None if result is None else result.rows
    first = next(iter(digests), None)
    for place, digest in digests.items():
        if digest != digests[first]:  # type: ignore[index]
            raise ConfigError(
                f"{place}: has other training rows than {first}, so the training data changed in "
                "between; remove the older one, and call aang compare again"
            )


def _without(options: Options) -> Options:
    return {name: value for name, value in options.items() if not _is_option(name)}


def _is_option(name: str) -> bool:
    return name.replace("-", "_") == _OPTION
