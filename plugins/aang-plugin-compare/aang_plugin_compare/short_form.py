"""Comparisons described on the command line, without a file."""

from collections.abc import Sequence

from aang.cli import training_options

from aang_core import ConfigError, Registry
from aang_core.storage import Source
from aang_plugin_compare.cells import Comparison
from aang_plugin_compare.planning import plan


def short_form(
    registry: Registry,
    methods: Sequence[str],
    arguments: Sequence[str],
    *,
    seeds: int | None = None,
    baseline: str | None = None,
    grid: str | None = None,
    train_rows: int | None = None,
) -> Comparison:
    """Plan the comparison of some methods on one task.

    Args:
        registry: where weighters, spaces and grids are looked up.
        methods: names of recipes and weighters.
        arguments: options of ``aang train`` that name the task, and others for all methods.
        seeds: number of seeds, from 0 on; 3 if None.
        baseline: the method that the others are tested against.
        grid: name of a grid.
        train_rows: number of training rows that each seed draws.

    Raises:
        ConfigError: there is no method, a method is given twice, or an option is wrong.
    """
    if not methods:
        raise ConfigError("give a comparison file, or methods such as --method single-task")
    repeated = {name for name in methods if methods.count(name) > 1}
    if repeated:
        raise ConfigError(f"--method {repeated.pop()}: is given twice; two methods need two names")
    task = training_options(arguments)
    if "out" in task:
        raise ConfigError("--out: goes before the --; every run has a folder of its own in it")
    if "seed" in task:
        raise ConfigError("--seed: give --seeds before the --, the number of seeds from 0 on")
    value = {
        "tasks": {str(task.get("target") or "task"): task},
        "methods": {
            name: {"recipe" if name in registry.recipes else "weighter": name} for name in methods
        },
        "seeds": list(range(seeds or 3)),
        "baseline": baseline,
        "grid": grid or {},
    }
    return plan(value, Source("the command line"), registry, train_rows=train_rows)
