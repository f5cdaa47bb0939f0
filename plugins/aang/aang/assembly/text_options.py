"""The options that name other text than the end task's: do paths exist, does the run read them?

Both are checked before anything that takes long is imported.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from aang.assembly.plan import READ_BY, Plan, make_plan
from aang.config import TrainConfig
from aang.corpora.places import REST, from_home, matching_paths, refuse_other_folders, require_file
from aang.corpora.tables import NOTHING_IN_MEMORY, TableInMemory
from aang_core.errors import AangError, ConfigError
from aang_core.objectives.space import load_space
from aang_core.plugins.registry import Registry

_OFFERED = 4
"""Most spaces that a message names."""


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

    Raises:
        AangError: a name is unknown or ambiguous, or nothing reads an option.
    """
    # A space may list auxiliary tasks, which are primitives only once their files are known.
    if not config.aux_task:
        refuse_unread(make_plan(config, registry, load=False), registry)


def refuse_unread(
    plan: Plan, registry: Registry, in_memory: Mapping[Path, TableInMemory] = NOTHING_IN_MEMORY
) -> None:
    """Refuse an option that names text which no data primitive of the run reads.

    Args:
        plan: the run's plan.
        registry: where the message looks for primitives that would read it.
        in_memory: the text that is in memory, by the files that stand for it.

    Raises:
        ConfigError: the message says what would read the text.
    """
    for name in plan.unread:
        places = getattr(plan.config, name)
        tables = [in_memory[Path(place)].source for place in places if Path(place) in in_memory]
        given = ", ".join(tables) or f"{_flag(name)} {' '.join(places)}"
        why = "" if plan.trained else f", since {plan.config.weighter} trains the end task alone"
        raise ConfigError(
            f"{given}: nothing in this run reads it{why}; {_readers(READ_BY[name], registry)}"
        )


def _readers(trait: str, registry: Registry) -> str:
    """A clause that says which spaces read the text of an option."""
    readers = [p.name for p in registry.primitives("data") if trait in p.provides]
    if not readers:
        return "no plug-in that is installed does, so leave it out"

    def reads(space: str) -> bool:
        # One that cannot be used here is not offered.
        with suppress(AangError):
            data = load_space(space, registry).stages["data"]
            return any(trait in primitive.provides for primitive in data)
        return False

    named = dict.fromkeys(s.name for s in (*registry.spaces, *registry.objectives))
    spaces = [name for name in named if reads(name)][:_OFFERED]
    whose = f"the data {' and '.join(readers)} would"
    return f"{whose}, as in --space {' or '.join(spaces)}" if spaces else whose


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
