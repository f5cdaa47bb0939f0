"""Planning the runs that a comparison file, or a command line, asks for."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aang.assembly import option_owners, without_unread_text
from aang.cli import training_options
from aang.config import TrainConfig, refuse_trust, resolve_training

from aang_core import AangError, ConfigError, Registry, load_space
from aang_core.storage import Source
from aang_plugin_compare.cells import Cell, Comparison, Match
from aang_plugin_compare.comparison_file import ComparisonFile, read_content
from aang_plugin_compare.settings import (
    PUSHING,
    WHY_NOT_PUSHED,
    Owners,
    applying,
    given_names,
    layered,
    plain_name,
    read_yaml,
    refuse_unowned,
    setting_text,
    told_at,
    with_setting,
)

_NOT_OF_ONE_RUN = {
    "out": "every run has a folder of its own",
    "seed": "every method has the same seeds; give them under seeds",
    **dict.fromkeys(PUSHING, WHY_NOT_PUSHED),
}
_DATA = "all methods are scored on the same rows; give it under options or tasks"
_NOT_OF_A_METHOD = {
    **_NOT_OF_ONE_RUN,
    **dict.fromkeys(
        ("train", "train_rows"),
        "all methods train on the same rows; give it under options or tasks",
    ),
    **dict.fromkeys(("dev", "test", "dataset", "dev_fraction", "meta_fraction"), _DATA),
    **dict.fromkeys(("label", "task_type", "label_names", "target", "skip_bad_rows"), _DATA),
    "metric": "scores of different metrics do not compare; give it under options or tasks",
}
_TEXT = ("domain", "out_of_domain", "unlabelled")
"""Text that a task offers to all methods, and that only some of them read."""

Grid = Mapping[str, Sequence[Any]]
"""Values by option; ``NAME.OPTION`` is an option of a weighter or primitive."""


def read_comparison(path: Path, registry: Registry, **over: Any) -> Comparison:
    """Read a comparison file and plan its runs.

    Args:
        path: the file.
        registry: where weighters, spaces and grids are looked up.
        **over: replace what the file says, unless None: ``seeds``, their number, from 0 on;
            ``baseline``; ``grid``, its name; ``train_rows``, the rows that each seed draws.

    Raises:
        ConfigError: the file cannot be read or is not a comparison; the message names the line.
    """
    value, source = read_yaml(path)
    return _plan(value, source, registry, **over)


def short_form(
    registry: Registry, methods: Sequence[str], arguments: Sequence[str], **over: Any
) -> Comparison:
    """Plan the comparison of some methods on one task, without a file.

    Args:
        registry: where weighters, spaces and grids are looked up.
        methods: names of recipes and weighters.
        arguments: options of ``aang train`` that name the task, and others for all methods.
        **over: like those of :func:`read_comparison`.

    Raises:
        ConfigError: there is no method, a method is given twice, or an option is wrong.
    """
    if not methods:
        raise ConfigError("give a comparison file, or methods such as --method single-task")
    if len(set(methods)) < len(methods):
        raise ConfigError("--method: one is given twice; two methods need two names")
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
    }
    return _plan(value, Source("the command line"), registry, **over)


def _plan(
    value: Any, source: Source, registry: Registry, train_rows: int | None = None, **over: Any
) -> Comparison:
    """Plan every run of a comparison, with its options and names checked."""
    if over.get("seeds") is not None:
        over["seeds"] = list(range(over["seeds"]))
    if isinstance(value, Mapping):
        value = {**value, **{name: given for name, given in over.items() if given is not None}}
    given = read_content(value, source)
    grid: str | Grid = given.grid
    if isinstance(grid, str):
        with told_at(source.at(("grid",))):
            grid = registry.grids.find(grid).options
    rows = {} if train_rows is None else {"train_rows": train_rows}
    planning = _Planning(given, source, registry, grid, rows)
    planning.check()
    return Comparison(
        list(given.tasks), list(given.methods), given.baseline, planning.matched_cells()
    )


@dataclass(frozen=True)
class _Planning:
    """Plans the runs of a comparison.

    Attributes:
        given: the content of the comparison file.
        source: where it comes from, for messages.
        registry: where names are looked up.
        grid: values of options to choose from on dev.
        over: options that replace those of every run.
    """

    given: ComparisonFile
    source: Source
    registry: Registry
    grid: Grid
    over: Mapping[str, Any]

    def check(self) -> None:
        """Refuse misplaced options, and grid options without values or with a fixed one."""
        common: dict[tuple[str, ...], Mapping[str, Any]] = {("options",): self.given.options}
        common |= {("tasks", name): of for name, of in self.given.tasks.items()}
        own: dict[tuple[str, ...], Mapping[str, Any]] = {("grid",): self.grid}
        own |= {("methods", name): of.options for name, of in self.given.methods.items()}
        for places, refused in ((common, _NOT_OF_ONE_RUN), (own, _NOT_OF_A_METHOD)):
            for place, options in places.items():
                for name in options:
                    if why := refused.get(plain_name(name)):
                        raise ConfigError(f"{self.source.at((*place, name))}: {name}: {why}")
        for option, values in self.grid.items():
            where = f"{self.source.at(('grid', option))}: {option}"
            if not values:
                raise ConfigError(f"{where} has no value to try")
            for name in self.given.methods:
                if plain_name(option) in given_names(self.given.options_of(name)):
                    raise ConfigError(
                        f"{where} is in the grid, and has a fixed value in the method {name}; "
                        "leave one of them out"
                    )

    def matched_cells(self) -> list[Cell]:
        """All runs; those that get as much as another have it as their ``match``."""
        pairs = list(itertools.product(self.given.tasks, self.given.methods))
        owners = {pair: self._owners(*pair) for pair in pairs}
        everything = {name: owner for of in owners.values() for name, owner in of.items()}
        for name in self.grid:
            where = self.source.at(("grid", name))
            refuse_unowned(name, everything, f"{where}: {name} is in the grid")
        cells = [cell for pair in pairs for cell in self._cells(*pair, owners[pair])]
        return [self._matched(cell, cells) for cell in cells]

    def _owners(self, task: str, method: str) -> Owners:
        """What may have options in the runs of a method on a task; empty if the grid has none.

        Raises:
            ConfigError: an option is wrong, or names something that does not exist.
        """
        config = self._config(task, method)
        with told_at(f"{self.source.at(('methods', method))}: method {method}"):
            self.registry.weighter(config.weighter)
            # Auxiliary tasks define a space, and other spaces may list them.
            if not config.aux_task:
                load_space(config.space, self.registry)
            if not any("." in name for name in self.grid):
                return {}
            return option_owners(config, self.registry)

    def _cells(self, task: str, method: str, owners: Owners) -> Iterator[Cell]:
        used = applying(list(self.grid), owners)
        for choice, values in enumerate(itertools.product(*(self.grid[name] for name in used))):
            setting = dict(zip(used, values, strict=True))
            chosen = (f"grid-{choice}",) if used else ()
            for seed in self.given.seeds:
                yield Cell(
                    Path("runs", task, method, *chosen, f"seed-{seed}"),
                    self._text_that_is_read(self._config(task, method, setting, seed), method),
                    task=task,
                    method=method,
                    seed=seed,
                    choice=choice if used else None,
                    setting=setting_text(setting),
                )

    def _config(
        self, task: str, method: str, setting: Mapping[str, Any] | None = None, seed: int = 0
    ) -> TrainConfig:
        options = layered(
            self.given.options, self.given.tasks[task], self.given.options_of(method), self.over
        )
        refuse_trust(options, self._place("trust_remote_code", task, method))
        try:
            options = {**with_setting(options, setting or {}), "seed": seed}
            config = resolve_training(options, {}, self.registry)
            if config.train_on_dev and (self.grid or (config.test or config.dataset) is None):
                raise ConfigError(
                    "train_on_dev: scores on dev, of rows that were trained on, would decide; "
                    "give a test set and leave a grid out"
                )
            return config
        except AangError as error:
            wrong = next((n for n in options if _concerns(str(error), n)), "")
            where = self._place(wrong, task, method)
            raise ConfigError(f"{where}: method {method} on task {task}: {error}") from error

    def _text_that_is_read(self, config: TrainConfig, method: str) -> TrainConfig:
        """The options without text of the task that the method does not read.

        Text that the method names itself stays, and its run refuses it.
        """
        own = given_names(self.given.options_of(method)) & set(_TEXT)
        kept = {name: getattr(config, name) for name in own}
        return without_unread_text(config, self.registry).model_copy(update=kept)

    def _matched(self, cell: Cell, cells: Sequence[Cell]) -> Cell:
        """The cell with the runs that its compute or seconds come from, if it is such a control."""
        method = self.given.methods[cell.method]
        if method.of is None:
            return cell
        where = f"{self.source.at(('methods', cell.method))}: method {cell.method}"
        beside = [c for c in cells if (c.task, c.seed) == (cell.task, cell.seed)]
        of = [c for c in beside if c.method == method.of]
        if cell.choice is not None or len(of) != 1:
            raise ConfigError(
                f"{where}: gets as much as a run of {method.of} takes, but with a grid there are "
                "several; leave the grid out"
            )
        if method.same_compute_as:
            return replace(cell, match=Match("compute", of[0].folder))
        free = [c for c in beside if self.given.methods[c.method].of is None]
        same = [c for c in free if c.config == cell.config]
        if not same:
            raise ConfigError(
                f"{where}: its number of steps follows from the seconds per step of a method with "
                "the same options, but there is none; add one, and name it here with 'as:'"
            )
        return replace(cell, match=Match("seconds", of[0].folder, same[0].folder))

    def _place(self, option: str, task: str, method: str) -> str:
        """The line of an option, wherever it was given, or else the line of the method."""
        places: dict[tuple[str, ...], Mapping[str, Any]] = {
            ("methods", method): self.given.methods[method].options,
            ("tasks", task): self.given.tasks[task],
            ("options",): self.given.options,
        }
        for place, part in places.items():
            for name in part:
                if plain_name(name) == plain_name(option):
                    return self.source.at((*place, name))
        return self.source.at(("methods", method))


def _concerns(message: str, option: str) -> bool:
    return message.startswith((f"--{option.replace('_', '-')} ", f"{option}:"))
