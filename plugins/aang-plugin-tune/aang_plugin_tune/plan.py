"""Planning a search: reading what the user has written, and checking it before anything runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aang.cli import training_options
from aang.config import TrainConfig, refuse_trust
from aang_plugin_compare.grid import refuse_unowned
from aang_plugin_compare.settings import (
    PUSHING,
    WHY_NOT_PUSHED,
    given_names,
    layered,
    option_name,
)

from aang_core import AangError, ConfigError, Registry, did_you_mean
from aang_core.storage import Source
from aang_plugin_tune.dimensions import Dimension, read_dimension
from aang_plugin_tune.search import METHOD, Search
from aang_plugin_tune.search_file import SearchFile, read_search_file

_DATA = "the settings would be scored on different data, and their dev scores could not be compared"
_NOT_SEARCHED = {
    **dict.fromkeys(("train", "dev", "test", "test_score", "dataset", "dev_fraction"), _DATA),
    **dict.fromkeys(("text", "text_pair", "label", "task_type", "label_names"), _DATA),
    **dict.fromkeys(("target", "skip_bad_rows", "meta_fraction"), _DATA),
    "metric": "dev scores of different metrics cannot be compared",
    "seed": "the best seed on dev is luck; --seeds refits the best setting with several",
    "out": "every run has a folder of its own",
    "trust_remote_code": "give --trust-remote-code to aang tune instead",
    **dict.fromkeys(PUSHING, WHY_NOT_PUSHED),
    "set": "name the option itself, such as factored.lr",
}


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
        searched: what is searched in addition, each as ``NAME=…``.
        methods: names of recipes and weighters to choose from, in addition.
        grid: name of a grid; its options are searched, too.
        arguments: options of ``aang train`` for all runs, in addition.

    Raises:
        AangError: something is unknown, given twice, or not possible.
    """
    given, source = (SearchFile(), Source("the command line"))
    if file is not None:
        given, source = read_search_file(file)
    options = _options(given, source, arguments)
    search = Search(
        options,
        _methods(given, source, methods, registry),
        _dimensions(given, source, searched, grid, registry),
        registry,
    )
    _refuse_both(search)
    _refuse_empty(search)
    _refuse_unknown(search)
    _refuse_unread(search)
    _probe(search)
    return search


def _options(given: SearchFile, source: Source, arguments: Sequence[str]) -> dict[str, Any]:
    options = _plain(given.options, source.at(("options",)))
    options = layered(options, training_options(arguments))
    if "out" in options:
        raise ConfigError("--out: goes before the --; every run has a folder of its own in it")
    for name in PUSHING:
        if name in options:
            raise ConfigError(f"--{name.replace('_', '-')}: {WHY_NOT_PUSHED}")
    return options


def _methods(
    given: SearchFile, source: Source, methods: Sequence[str], registry: Registry
) -> dict[str, dict[str, Any]]:
    named = {}
    for name, of in given.methods.items():
        where = source.at(("methods", name))
        named[name] = _plain(of, where)
        if wrong := sorted(set(named[name]) & (set(_NOT_SEARCHED) - {"set"})):
            raise ConfigError(f"{where}: {wrong[0]}: {_NOT_SEARCHED[wrong[0]]}")
    for name in methods:
        if name in named:
            raise ConfigError(f"--method {name}: is given twice")
        named[name] = {"recipe" if name in registry.recipes else "weighter": name}
    return named


def _dimensions(
    given: SearchFile,
    source: Source,
    searched: Sequence[str],
    grid: str | None,
    registry: Registry,
) -> dict[str, Dimension]:
    found: dict[str, Dimension] = {}

    def add(name: str, value: object, where: str) -> None:
        name = option_name(name)
        if name in found:
            raise ConfigError(f"{where}: {name} is searched twice; leave one out")
        if name in _NOT_SEARCHED:
            raise ConfigError(f"{where}: {name} cannot be searched: {_NOT_SEARCHED[name]}")
        if "." not in name and name not in TrainConfig.model_fields:
            hint = did_you_mean(name, TrainConfig.model_fields, "some options are")
            raise ConfigError(f"{where}: aang train has no option {name!r}; {hint}")
        found[name] = read_dimension(value, where)

    for name, value in given.search.items():
        add(name, value, f"{source.at(('search', name))}: search {name}")
    for text in searched:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"--search {text}: give NAME=…, such as lr=1e-5..1e-3:log")
        add(name, value, f"--search {name}")
    for place, of in (("--grid", grid), (f"{source.at(('grid',))}: grid", given.grid)):
        if of is not None:
            for name, values in registry.grids.find(of).options.items():
                add(name, tuple(values), f"{place} {of}, {name}")
    return found


def _plain(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    plain = {name.replace("-", "_"): value for name, value in options.items()}
    refuse_trust(plain, where)
    sets = plain.setdefault("set", {})
    if not isinstance(sets, Mapping) or not all(isinstance(of, Mapping) for of in sets.values()):
        raise ConfigError(f"{where}: set: give options by name, such as {{factored: {{lr: 0.5}}}}")
    return plain


def _refuse_both(search: Search) -> None:
    """Refuse options that are searched and have a fixed value, too."""
    places = [("the options of all runs", search.options)]
    places += [(f"the method {name}", of) for name, of in search.methods.items()]
    for place, of in places:
        fixed = given_names(of)
        for name in search.dimensions:
            if name in fixed:
                raise ConfigError(
                    f"{name} is searched, and has a fixed value in {place}; leave one of them out"
                )


def _refuse_empty(search: Search) -> None:
    if len(search.methods) < 2 and all(len(of.probes) == 1 for of in search.dimensions.values()):
        raise ConfigError(
            "there is nothing to search: give --search NAME=…, --grid NAME or several --method, "
            "with two settings at least"
        )


def _refuse_unknown(search: Search) -> None:
    """Check that methods exist, and that some run uses each ``NAME.OPTION`` that is searched."""
    owners: dict[str, Any] = {}
    for chosen in search.methods_chosen():
        owners |= search.owners(chosen)
    for name in search.dimensions:
        if "." in name:
            refuse_unowned(name, owners, f"{name} is searched")


def _refuse_unread(search: Search) -> None:
    """Refuse text in the options of all runs that none of them reads."""
    configs = [search.config(chosen) for chosen in search.methods_chosen()]
    for name in ("domain", "out_of_domain", "unlabelled"):
        if search.options.get(name) and not any(getattr(config, name) for config in configs):
            raise ConfigError(f"--{name.replace('_', '-')}: no run of this search reads it")


def _probe(search: Search) -> None:
    """Resolve the options of a run with each value that is searched, one dimension at a time."""
    for chosen in search.methods_chosen():
        others = search.applying(chosen)
        first = {name: of.probes[0] for name, of in others.items()}
        for name, of in others.items():
            for value in of.probes:
                _resolve(search, {**chosen, **first, name: value}, name)
        if not others:
            _resolve(search, {**chosen}, METHOD)
    test = search.options.get("test")
    if test is not None and not Path(test).is_file():
        raise ConfigError(f"--test {test}: there is no such file")


def _resolve(search: Search, setting: dict[str, Any], name: str) -> None:
    try:
        search.config(setting)
    except AangError as error:
        what = f"{name}={setting[name]}" if name in setting else "the options of the runs"
        raise ConfigError(f"{what}: {error}") from error
