"""Options that name files, in a form that does not depend on the current folder."""

from pathlib import Path
from typing import Any

from aang.config.schema import TrainConfig
from aang.corpora.names import REST

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

    Names of models and data sets that are no folders here are names on the hub, and stay. So do
    options of primitives, which only the primitives can read.

    Examples:
        >>> from pathlib import Path
        >>> config = with_absolute_paths(TrainConfig(train="data.csv", model="roberta-base"))
        >>> config.train == Path.cwd() / "data.csv", config.model
        (True, 'roberta-base')
    """
    found: dict[str, Any] = {
        name: None if path is None else Path(_absolute(str(path)))
        for name, path in (("train", config.train), ("dev", config.dev), ("test", config.test))
    }
    for name in ("domain", "out_of_domain", "unlabelled"):
        places = getattr(config, name)
        found[name] = tuple(p if _is_rest(name, p) else _absolute(p) for p in places)
    found["aux_task"] = {n: Path(_absolute(str(path))) for n, path in config.aux_task.items()}
    found["set"] = {
        name: _with_absolute_files(of) if name in config.aux_task else of
        for name, of in config.set.items()
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
    """What a space is called, wherever its file is."""
    return Path(space).name if space.endswith(_SPACE_FILES) else space


def _with_absolute_files(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _absolute(value) if name in _FILES_OF_A_TASK and isinstance(value, str) else value
        for name, value in options.items()
    }


def _is_rest(option: str, place: str) -> bool:
    return option == "unlabelled" and place == REST


def _absolute(path: str) -> str:
    # ~ means the same everywhere; after a slash it would be an ordinary character.
    return path if path.startswith("~") else str(Path(path).absolute())
