"""The options that name text besides the end task's: are their paths there, does the run read them?

Both are checked before anything that takes long is imported.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aang.config import TrainConfig
from aang.corpora.matching import from_home, matching_paths
from aang.corpora.names import REST
from aang.corpora.tables import NOTHING_IN_MEMORY, TableSource
from aang.corpora.text_files import require_file
from aang.modeling.model_folder import refuse_other_folders
from aang.task_types.names import TRAITS
from aang_core.errors import AangError, ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.recipes import find_recipe
from aang_core.objectives.space import load_space
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import RecipeEntry, Registry

READ_BY = {
    "domain": "reads:domain",
    "out_of_domain": "reads:out-of-domain",
    "unlabelled": "reads:unlabelled",
}
"""The options that name text, and the trait of the data primitives that read it."""

_OFFERED = 4
"""Most spaces or recipes that a message names."""


def check_paths(config: TrainConfig, in_memory: Collection[Path] = ()) -> None:
    """Refuse a path that does not exist, whether the run would read it or not.

    Args:
        config: the run's options.
        in_memory: paths that stand for tables in memory.

    Raises:
        DataError: there is no such file, or a glob matches nothing.
        ModelError: ``--model`` is a file, or a folder without a model.
    """
    if config.model is not None:
        refuse_other_folders(config.model)
    test = config.test if config.test_score else None
    for path in (config.train, config.dev, test, *config.aux_task.values()):
        if path is not None and path not in in_memory:
            require_file(path)
    for name in READ_BY:
        for place in getattr(config, name):
            is_rest = name == "unlabelled" and place == REST
            if not is_rest and Path(place) not in in_memory:
                matching_paths(from_home(Path(place), _flag(name)), _flag(name))


def check_names(config: TrainConfig, registry: Registry) -> None:
    """Refuse an unknown weighter or space, and text that no primitive of the space reads.

    Unlike :func:`aang.assembly.composition.compose` this imports no primitive.

    Raises:
        AangError: a name is unknown or ambiguous, or nothing reads an option.
    """
    registry.weighter(config.weighter)
    # A space may list auxiliary tasks, which are primitives only once they have been looked up.
    if not config.aux_task:
        refuse_unread(config, _data_of(config, registry), registry)


def refuse_unread(
    config: TrainConfig,
    data: Iterable[Primitive],
    registry: Registry,
    in_memory: Mapping[Path, TableSource] = NOTHING_IN_MEMORY,
) -> None:
    """Refuse an option that names text which no data primitive of the run reads.

    Args:
        config: the run's options.
        data: the data primitives of the run.
        registry: where the message looks for primitives that would read it.
        in_memory: the text that is in memory, by the files that stand for it.

    Raises:
        ConfigError: the message says what would read the text.
    """
    data = list(data)
    for name in unread(config, data):
        places = getattr(config, name)
        tables = [in_memory[Path(place)].source for place in places if Path(place) in in_memory]
        given = ", ".join(tables) or f"{_flag(name)} {' '.join(places)}"
        why = "" if data else f", since {config.weighter} trains the end task alone"
        raise ConfigError(f"{given}: nothing in this run reads it{why}; {_readers(name, registry)}")


def unread(config: TrainConfig, data: Iterable[Primitive]) -> list[str]:
    """The options that name text which none of the data primitives ``data`` reads."""
    traits = frozenset[str]().union(*(primitive.provides for primitive in data))
    return [
        name for name, trait in READ_BY.items() if getattr(config, name) and trait not in traits
    ]


def _data_of(config: TrainConfig, registry: Registry) -> list[Primitive]:
    """The data primitives of the space and of the stages of pre-training."""
    registry = registry.for_end_task(TRAITS[config.task_type or "single-label"])
    listed = [objective.data for objective in load_space(config.space, registry).objectives]
    if config.recipe:
        listed += _pretraining_data(find_recipe(config.recipe, registry), registry)
    return listed


def _pretraining_data(recipe: RecipeEntry, registry: Registry) -> Iterator[Primitive]:
    theirs = registry.as_meant_by(recipe.origin.distribution)
    for name in recipe.pretraining:
        yield Objective.parse(name, theirs).data


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _readers(name: str, registry: Registry) -> str:
    """A clause that says which spaces and recipes read the text of an option."""
    trait = READ_BY[name]
    readers = [p.name for p in registry.primitives("data") if trait in p.provides]
    if not readers:
        return "no plug-in that is installed does, so leave it out"

    def reads(data: Iterable[Primitive]) -> bool:
        # A space or recipe that cannot be used here is not offered.
        with suppress(AangError):
            return any(trait in primitive.provides for primitive in data)
        return False

    spaces = [
        space.name
        for space in (*registry.spaces, *registry.objectives)
        if reads(_space_data(space.name, registry))
    ]
    recipes = [recipe.name for recipe in registry.recipes if reads(_recipe_data(recipe, registry))]
    offered = [("--space", spaces), ("--recipe", recipes)]
    named = [f"{option} {_some(names)}" for option, names in offered if names]
    whose = f"the data {' and '.join(readers)} would"
    return f"{whose}, as in {', or '.join(named)}" if named else whose


def _space_data(name: str, registry: Registry) -> Iterator[Primitive]:
    yield from load_space(name, registry).stages["data"]


def _recipe_data(recipe: RecipeEntry, registry: Registry) -> Iterator[Primitive]:
    theirs = registry.as_meant_by(recipe.origin.distribution)
    options: Mapping[str, Any] = recipe.options
    if "space" in options:
        yield from _space_data(str(options["space"]), theirs)
    yield from _pretraining_data(recipe, registry)


def _some(names: list[str]) -> str:
    shown = list(dict.fromkeys(names))[:_OFFERED]
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]
