"""Options that name files, in a form that does not depend on the current folder."""

from pathlib import Path
from typing import Any

from aang.config.schema import TrainConfig
from aang.corpora.places import REST

NAMES_OF_SOURCES = frozenset(
    {
        *("train", "dev", "test", "dataset", "aux_task", "domain", "out_of_domain", "unlabelled"),
        *("model", "space"),
    }
)
"""Options that say where something is read from."""

_SPACE_FILES = (".yaml", ".yml")
_FILES_OF_A_TASK = ("dev", "test")


def with_absolute_paths(config: TrainConfig) -> TrainConfig:
    """The same options with absolute paths, so that they mean the same in every folder.

    Models and data sets that are not folders here are names on the hub, and stay. So do options of
    primitives, which only the primitives can read.

    Examples:
        >>> from pathlib import Path
        >>> config = with_absolute_paths(TrainConfig(train="data.csv", model="roberta-base"))
        >>> config.train == Path.cwd() / "data.csv", config.model
        (True, 'roberta-base')
    """
    named = ("train", "dev", "test", "aux_task", "domain", "out_of_domain")
    found = {name: _absolute(getattr(config, name)) for name in named}
    found["unlabelled"] = tuple(p if p == REST else _absolute(p) for p in config.unlabelled)
    found["set"] = config.set | {
        name: of | {option: _absolute(of[option]) for option in _FILES_OF_A_TASK if option in of}
        for name, of in config.set.items()
        if name in config.aux_task
    }
    if config.model is not None and Path(config.model).is_dir():
        found["model"] = _absolute(config.model)
    if config.dataset is not None:
        place, colon, part = config.dataset.partition(":")
        if Path(place).is_dir():
            found["dataset"] = f"{_absolute(place)}{colon}{part}"
    if config.space.endswith(_SPACE_FILES):
        found["space"] = _absolute(config.space)
    return config.model_copy(update=found)


def name_of_space(space: str) -> str:
    """The name of a space, wherever its file is."""
    return Path(space).name if space.endswith(_SPACE_FILES) else space


def _absolute(value: Any) -> Any:
    """A path, or every path in a tuple or a mapping, made absolute; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(_absolute, value))
    if isinstance(value, dict):
        return {name: _absolute(path) for name, path in value.items()}
    # ~ means the same everywhere; after a slash it would be an ordinary character.
    if not isinstance(value, str | Path) or str(value).startswith("~"):
        return value
    return type(value)(Path(value).absolute())
