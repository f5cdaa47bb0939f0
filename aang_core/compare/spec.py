"""What is to be compared: the content of a comparison file.

```yaml
tasks:
  acl-arc: {train: acl-arc/train.jsonl, dev: acl-arc/dev.jsonl, test: acl-arc/test.jsonl}
methods:
  fine-tuning: {weighter: single-task}
  tapt: {recipe: tapt}
  aang: {space: td, weighter: factored}
  more-rows: {as: fine-tuning, same_compute_as: aang}
seeds: [0, 1, 2]
baseline: fine-tuning        # optional
options: {model: roberta-base, steps: 300, train-rows: 500}   # optional, for all runs
grid: {lr: [1e-4, 1e-3], factored.lr: [0.1, 1.0]}   # optional
```
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang_core.compare.control_results import QUICK_CONTROLS
from aang_core.compare.controls import Control, controls_of, merged_settings
from aang_core.compare.matching import Match
from aang_core.compare.same_rows import refuse_own_rows, with_train_rows
from aang_core.config import TrainConfig, refuse_trust, resolve_config
from aang_core.errors import AangError, ConfigError
from aang_core.objectives.space import load_space
from aang_core.plugins.registry import Registry, did_you_mean
from aang_core.storage.yaml_source import Location, NumberLoader, Source, parse_yaml

GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "paper-td": {
        "factored.lr": (1.0, 0.1),
        "factored.end_task_lr": (0.1, 0.01),
        "factored.n": (3, 6),
        "head_lr": (1e-3, 1e-4),
        "lr": (1e-4,),
    },
}
"""Grids by name: AANG-TD's of appendix D, table 5. The paper tries rates of the encoder; its
code keeps that at 1e-4 and tries these values for the heads. What belongs to a weighter that a
method does not use is left out for that method."""

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]
"""What folders are called after; so it is no path, and no file system finds it too long."""

_Options = dict[str, Any]


class ComparisonFile(BaseModel):
    """The validated content of a comparison file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: Annotated[dict[_Name, _Options], Field(min_length=1)]
    methods: Annotated[dict[_Name, _Options], Field(min_length=1)]
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (0, 1, 2)
    baseline: str | None = None
    options: _Options = {}
    grid: str | dict[str, tuple[Any, ...]] = {}


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    choice: the place in the grid, from 0, or None without a grid; setting: what it sets.
    match: what it is given as much of as another run takes; ``config`` is without that.
    """

    task: str
    method: str
    seed: int
    config: TrainConfig
    choice: int | None = None
    setting: str = ""
    match: Match | None = None

    @property
    def folder(self) -> Path:
        """Where the run goes, below the folder of the comparison."""
        chosen = () if self.choice is None else (f"grid-{self.choice}",)
        return Path("runs", self.task, self.method, *chosen, f"seed-{self.seed}")


@dataclass(frozen=True)
class Comparison:
    """Everything that is to be run, and what it is measured against."""

    tasks: Sequence[str]
    methods: Sequence[str]
    baseline: str | None
    cells: Sequence[Cell]


def read_comparison(
    path: Path,
    registry: Registry,
    *,
    seeds: int | None = None,
    baseline: str | None = None,
    grid: str | None = None,
    train_rows: int | None = None,
) -> Comparison:
    """Read and plan a comparison file; what is given besides goes before its own.

    Raises:
        ConfigError: it cannot be read or holds something that is no comparison; with its line.
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
    """Every run that a comparison asks for, each with its options and names checked.

    train_rows: how many training rows each seed draws, before what the tasks say.

    Raises:
        ConfigError: as :func:`read_comparison`.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source.at(())}: a comparison is a mapping with the keys "
            f"{', '.join(ComparisonFile.model_fields)}"
        )
    try:
        given = ComparisonFile.model_validate(dict(value))
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        raise ConfigError(f"{source.at(first['loc'])}: {_explain(first)}") from error
    if given.baseline is not None and given.baseline not in given.methods:
        hint = did_you_mean(given.baseline, given.methods, "the methods are")
        raise ConfigError(
            f"{source.at(('baseline',))}: baseline {given.baseline!r} is no method here; {hint}"
        )
    if taken := set(given.methods) & set(QUICK_CONTROLS):
        name = min(taken)
        raise ConfigError(
            f"{source.at(('methods', name))}: {name} is the name of a quick control; give the "
            "method another name"
        )
    grid = _grid(given.grid, source)
    refuse_own_rows(grid, given.methods, source)
    if train_rows is not None:
        given = given.model_copy(update=with_train_rows(given.tasks, given.options, train_rows))
    controls, methods = controls_of(given.methods, source)
    given = given.model_copy(update={"methods": methods})
    _refuse_too_many(given, grid, source)
    cells = [
        cell
        for task in given.tasks
        for method in given.methods
        for cell in _cells(given, task, method, grid, source, registry)
    ]
    _check_names(cells, given, source, registry)
    cells = [_matched(cell, controls, cells, source) for cell in cells]
    return Comparison(list(given.tasks), list(given.methods), given.baseline, cells)


def _matched(
    cell: Cell, controls: Mapping[str, Control], cells: Sequence[Cell], source: Source
) -> Cell:
    """The cell with the runs that say how much it is given, if it is given as much as another."""
    control = controls[cell.method]
    if control.what is None:
        return cell
    where = f"{source.at(('methods', cell.method))}: method {cell.method}"
    beside = [c for c in cells if (c.task, c.seed) == (cell.task, cell.seed)]
    of = [c for c in beside if c.method == control.of]
    if cell.choice is not None or len(of) != 1:
        raise ConfigError(
            f"{where}: is given as much as a run of {control.of} takes, of which a grid makes "
            "several; leave the grid out"
        )
    if control.what == "compute":
        return replace(cell, match=Match("compute", of[0].folder))
    same = [c for c in beside if controls[c.method].what is None and c.config == cell.config]
    if not same:
        raise ConfigError(
            f"{where}: its steps come from the seconds a step of a method with the same options, "
            "and there is none; add one, and name it here with 'as:'"
        )
    return replace(cell, match=Match("seconds", of[0].folder, same[0].folder))


MOST_RUNS = 10_000
"""Most runs of a comparison; a slip in the grid can ask for millions."""


def _refuse_too_many(
    given: ComparisonFile, grid: Mapping[str, Sequence[Any]], source: Source
) -> None:
    settings = math.prod(len(values) for values in grid.values())
    runs = len(given.tasks) * len(given.methods) * len(given.seeds) * settings
    if runs > MOST_RUNS:
        raise ConfigError(
            f"{source.at(())}: asks for as many as {runs} runs; the most is {MOST_RUNS}, so leave "
            "tasks, methods, seeds or values of the grid out"
        )


def _check_names(
    cells: Sequence[Cell], given: ComparisonFile, source: Source, registry: Registry
) -> None:
    """Look up what the methods name, so that a slip is told before anything has run."""
    for cell in {(cell.task, cell.method): cell for cell in cells}.values():
        for option, look_up in (("weighter", registry.weighter), ("space", _space_in(registry))):
            # Auxiliary tasks make a space of their own, and may be listed in others.
            if option == "space" and cell.config.aux_task:
                continue
            try:
                look_up(getattr(cell.config, option))
            except AangError as error:
                where = _place(given, source, option, cell.task, cell.method)
                raise ConfigError(f"{where}: method {cell.method}: {error}") from error


def _space_in(registry: Registry) -> Callable[[str], object]:
    return lambda name: load_space(name, registry)


def _grid(grid: str | Mapping[str, Sequence[Any]], source: Source) -> Mapping[str, Sequence[Any]]:
    if isinstance(grid, str):
        if grid not in GRIDS:
            hint = did_you_mean(grid, GRIDS, "the grids are")
            raise ConfigError(f"{source.at(('grid',))}: there is no grid {grid!r}; {hint}")
        return GRIDS[grid]
    for option, values in grid.items():
        if not values:
            raise ConfigError(f"{source.at(('grid', option))}: {option} has no value to try")
    return grid


def _cells(
    given: ComparisonFile,
    task: str,
    method: str,
    grid: Mapping[str, Sequence[Any]],
    source: Source,
    registry: Registry,
) -> Iterator[Cell]:
    options = {**given.options, **given.tasks[task], **given.methods[method]}
    parts = (given.options, given.tasks[task], given.methods[method])
    options["set"] = merged_settings([part.get("set") or {} for part in parts])
    weighter = _resolved(options, given, source, task, method, registry).weighter
    used = {
        option: values
        for option, values in grid.items()
        if "." not in option or option.partition(".")[0] == weighter
    }
    for choice, values in enumerate(itertools.product(*used.values())):
        setting = dict(zip(used, values, strict=True))
        for seed in given.seeds:
            config = _resolved(
                {**_with(options, setting), "seed": seed}, given, source, task, method, registry
            )
            yield Cell(
                task,
                method,
                seed,
                config,
                choice if used else None,
                ", ".join(f"{name}={value}" for name, value in setting.items()),
            )


def _with(options: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those of the grid; ``factored.lr`` is one of ``set``."""
    changed = {**options, "set": {name: dict(of) for name, of in options.get("set", {}).items()}}
    for name, value in setting.items():
        primitive, dot, option = name.rpartition(".")
        if dot:
            changed["set"].setdefault(primitive, {})[option] = value
        else:
            changed[name] = value
    return changed


def _resolved(
    options: Mapping[str, Any],
    given: ComparisonFile,
    source: Source,
    task: str,
    method: str,
    registry: Registry,
) -> TrainConfig:
    plain = {name.replace("-", "_"): value for name, value in options.items()}
    if "out" in plain:
        where = _place(given, source, "out", task, method)
        raise ConfigError(f"{where}: out: every run has a folder of its own")
    refuse_trust(plain, _place(given, source, "trust_remote_code", task, method))
    try:
        return resolve_config(plain, {}, registry)
    except AangError as error:
        wrong = next((n for n in options if _concerns(str(error), n)), "")
        where = _place(given, source, wrong, task, method)
        raise ConfigError(f"{where}: method {method} on task {task}: {error}") from error


def _concerns(message: str, option: str) -> bool:
    return message.startswith((f"--{option.replace('_', '-')} ", f"{option.replace('-', '_')}:"))


def _place(given: ComparisonFile, source: Source, option: str, task: str, method: str) -> str:
    """The line of an option, wherever it was given; that of the method if it was not."""
    places: list[tuple[Location, Mapping[str, Any]]] = [
        (("methods", method), given.methods[method]),
        (("tasks", task), given.tasks[task]),
        (("options",), given.options),
    ]
    for place, part in places:
        for name in part:
            if name.replace("-", "_") == option.replace("-", "_"):
                return source.at((*place, name))
    return source.at(("methods", method))


def _explain(error: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden":
            hint = did_you_mean(key, ComparisonFile.model_fields, "the keys are")
            return f"unknown key {key}; {hint}"
        case "too_short":
            return f"{key} is empty"
        case "string_too_long":
            return f"the name {error['input']:.40}… is too long; the most is 100 characters"
        case "string_pattern_mismatch":
            return f"{error['input']!r} is no name: letters, digits and . _ + - make one"
        case _:
            return f"{key}: {error['msg']}"
