"""Planning a search: reading what the user has written, and checking it before anything runs.

A search file holds the same as the options of the command:

```yaml
methods:                     # optional; whole recipes to choose from
  fine-tuning: {weighter: single-task}
  contrast: {recipe: contrast}
search:
  lr: 1e-5..1e-3:log
  batch-size: [16, 32]
grid: paper-td               # optional; by the name that a plug-in gives it
options: {train: acl-arc/train.jsonl, dev: acl-arc/dev.jsonl, model: roberta-base}
```
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aang.cli import training_options
from aang.config import refuse_trust, schema_of
from aang_plugin_compare.settings import (
    PUSHING,
    WHY_NOT_PUSHED,
    Name,
    Options,
    given_names,
    layered,
    plain_name,
    read_yaml,
    refuse_unowned,
    told_at,
    validated,
)
from pydantic import BaseModel, ConfigDict

from aang_core import ConfigError, Registry, did_you_mean
from aang_core.storage import Source
from aang_plugin_tune.dimensions import Dimension, read_dimension
from aang_plugin_tune.search import Search

_DATA = "the settings would be scored on different data, and their dev scores could not be compared"
_NOT_OF_A_METHOD = {
    **dict.fromkeys(("train", "dev", "test", "test_score", "dataset", "dev_fraction"), _DATA),
    **dict.fromkeys(("text", "text_pair", "label", "task_type", "label_names"), _DATA),
    **dict.fromkeys(("target", "skip_bad_rows", "meta_fraction"), _DATA),
    "metric": "dev scores of different metrics cannot be compared",
    "seed": "the best seed on dev is luck; --seeds refits the best setting with several",
    "out": "every run has a folder of its own",
    "trust_remote_code": "give --trust-remote-code to aang tune instead",
    **dict.fromkeys(PUSHING, WHY_NOT_PUSHED),
}
_NOT_SEARCHED = {**_NOT_OF_A_METHOD, "set": "name the option itself, such as factored.lr"}


class SearchFile(BaseModel):
    """The validated content of a search file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: dict[Name, Options] = {}
    search: dict[str, Any] = {}
    grid: str | None = None
    options: Options = {}


def read_search_file(path: Path) -> tuple[SearchFile, Source]:
    """Read a search file.

    Returns:
        Its content, and where each part of it is, for messages.

    Raises:
        ConfigError: it cannot be read or is no search file; the message names the line.
    """
    value, source = read_yaml(path)
    return validated(SearchFile, value, source), source


def plan(
    registry: Registry,
    *,
    file: Path | None = None,
    searched: Sequence[str] = (),
    methods: Sequence[str] = (),
    grid: str | None = None,
    arguments: Sequence[str] = (),
) -> Search:
    """Plan a search, with its options and names checked.

    Args:
        registry: where recipes, weighters, spaces and grids are looked up.
        file: a search file.
        searched: further options to search, each as ``NAME=…``.
        methods: names of recipes and weighters to choose from, in addition.
        grid: name of a grid; its options are searched, too.
        arguments: options of ``aang train`` for all runs, in addition.

    Raises:
        AangError: something is unknown, given twice, or not possible.
    """
    given, source = SearchFile(), Source("the command line")
    if file is not None:
        given, source = read_search_file(file)
    refuse_trust(layered(given.options), source.at(("options",)))
    options = layered(given.options, training_options(arguments))
    for name in ("out", *PUSHING):
        if name in options:
            raise ConfigError(f"--{name.replace('_', '-')}: {_NOT_SEARCHED[name]}")
    named = {name: layered(of) for name, of in given.methods.items()}
    for name, of in named.items():
        if wrong := sorted(set(of) & set(_NOT_OF_A_METHOD)):
            where = source.at(("methods", name))
            raise ConfigError(f"{where}: {wrong[0]}: {_NOT_OF_A_METHOD[wrong[0]]}")
    for name in methods:
        if name in named:
            raise ConfigError(f"--method {name}: is given twice")
        named[name] = layered({"recipe" if name in registry.recipes else "weighter": name})
    places = {f"{source.at(('search', n))}: search {n}": (n, of) for n, of in given.search.items()}
    for text in searched:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"--search {text}: give NAME=…, such as lr=1e-5..1e-3:log")
        places[f"--search {text}"] = name, value
    for where, of_name in (("--grid", grid), (f"{source.at(('grid',))}: grid", given.grid)):
        if of_name is not None:
            for name, values in registry.grids.find(of_name).options.items():
                places[f"{where} {of_name}, {name}"] = name, tuple(values)
    search = Search(options, named, _dimensions(places, registry), registry)
    _check(search)
    return search


def _dimensions(places: Mapping[str, tuple[str, Any]], registry: Registry) -> dict[str, Dimension]:
    """The dimensions by option, from the option and values that are written at each place."""
    known = schema_of(registry).model_fields
    found: dict[str, Dimension] = {}
    for where, (written, value) in places.items():
        name = plain_name(written)
        if name in found:
            raise ConfigError(f"{where}: {name} is searched twice; leave one out")
        if name in _NOT_SEARCHED:
            raise ConfigError(f"{where}: {name} cannot be searched: {_NOT_SEARCHED[name]}")
        if "." not in name and name not in known:
            hint = did_you_mean(name, known, "some options are")
            raise ConfigError(f"{where}: aang train has no option {name!r}; {hint}")
        found[name] = read_dimension(value, where)
    return found


def _check(search: Search) -> None:
    """Check that there is something to search, and that runs accept the values searched."""
    places = {"the options of all runs": search.options}
    places |= {f"the method {name}": of for name, of in search.methods.items()}
    for place, of in places.items():
        if both := [name for name in search.dimensions if name in given_names(of)]:
            raise ConfigError(
                f"{both[0]} is searched, and has a fixed value in {place}; leave one of them out"
            )
    if len(search.methods) < 2 and all(len(of.probes) == 1 for of in search.dimensions.values()):
        raise ConfigError(
            "there is nothing to search: give --search NAME=…, --grid NAME or several --method, "
            "with two settings at least"
        )
    owners: dict[str, Any] = {}
    for chosen in search.methods_chosen():
        owners |= search.owners(chosen)
    for name in search.dimensions:
        refuse_unowned(name, owners, f"{name} is searched")
    # The options of a run with each value that is searched, one dimension at a time.
    for chosen in search.methods_chosen():
        others = search.applying(chosen)
        first = {name: of.probes[0] for name, of in others.items()}
        for name, dimension in others.items():
            for value in dimension.probes:
                with told_at(f"{name}={value}"):
                    search.config({**chosen, **first, name: value})
    test = search.options.get("test")
    if test is not None and not Path(test).is_file():
        raise ConfigError(f"--test {test}: there is no such file")
