"""Combines a configuration file, options, a recipe and the defaults into one configuration."""

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError

from aang.config.plugin_options import check_plugin_option, schema_of
from aang.config.schema import DEFAULT_RECIPE, DEFAULT_SPACE, ROWS, Section, TrainConfig
from aang.config.values import Settings, parse_settings
from aang_core.errors import ConfigError, UnknownNameError
from aang_core.objectives.space import name_in_full
from aang_core.plugins.primitive import CORE, RecipeEntry
from aang_core.plugins.registry import DEFAULT_WEIGHTER, Registry
from aang_core.storage.yaml_source import NumberLoader, parse_yaml

SectionT = TypeVar("SectionT", bound=Section)

AUXILIARY_TASKS = "aux-tasks"
"""The space of only the auxiliary tasks, each of which predicts its labels from its text."""

DEMO_DEFAULTS: Mapping[str, Any] = {"lr": 3e-4, "head_lr": 3e-3, "steps": 300}
"""Other defaults for the built-in demo, chosen on its dev set."""


def read_config_file(path: Path) -> dict[str, Any]:
    """Read the options in a YAML configuration file; dashes in names become underscores.

    Raises:
        ConfigError: there is no such file, or it is not a mapping in YAML; the message names the
            line.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    content, _ = parse_yaml(written, str(path), NumberLoader)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{path}: must hold options by name, such as 'weighter: factored'")
    options = {key.replace("-", "_"): value for key, value in content.items()}
    if len(options) < len(content):
        names = Counter(key.replace("-", "_") for key in content)
        twice, _ = names.most_common(1)[0]
        raise ConfigError(f"{path}: gives {twice} twice, with dashes and with underscores")
    refuse_trust(options, str(path))
    return options


def refuse_trust(options: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError if a file asks to run the code of a model.

    The author of the file need not be the user who runs it.
    """
    if "trust_remote_code" in options:
        raise ConfigError(
            f"{where}: trust_remote_code cannot be asked for in a file; give --trust-remote-code "
            "on the command line if you trust the authors of the model"
        )


def resolve_config(
    from_file: Mapping[str, Any],
    from_options: Mapping[str, Any],
    registry: Registry | None = None,
) -> TrainConfig:
    """Resolve a configuration: options override the file, then the recipe, then the defaults.

    Args:
        from_file: the options in a configuration file.
        from_options: the options given in addition.
        registry: where recipes and the options of plug-ins are looked up.

    Raises:
        ConfigError: a key is unknown or a value is invalid; the message names each.
        UnknownNameError: there is no such recipe, or an option's plug-in is not installed.
    """
    registry = registry or Registry()
    given = _together(from_file, from_options)
    own_rows = {name for name in ROWS if given.get(name) is not None}
    if given.get("recipe") is not None:
        given = _with_recipe(registry.recipes.find(str(given["recipe"])), given, registry)
    if given.get("aux_task") and given.get("space") is None:
        given["space"] = AUXILIARY_TASKS
    is_demo = all(given.get(name) is None for name in ("train", "dataset", "target"))
    given = {**_defaults(registry), **(DEMO_DEFAULTS if is_demo else {}), **given}
    config = _known(given, registry)
    if config.scale_rows == 1.0:
        return config
    scaled = {
        name: max(1, math.floor(getattr(config, name) * config.scale_rows + 0.5))
        for name in ROWS
        if name not in own_rows
    }
    return _known({**given, **scaled}, registry)


def recorded_config(path: Path, registry: Registry | None = None, **over: Any) -> TrainConfig:
    """Read the configuration that a run has recorded.

    Its recipe is applied already, so the recipe's plug-in need not be installed any more.

    Args:
        path: the run's ``config.yaml``.
        registry: where the options of plug-ins are looked up; without it, the file's are kept
            unchecked.
        **over: options that override it.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value is invalid.
        UnknownNameError: the plug-in of an option that was given is not installed.
    """
    recorded = _together(read_config_file(path), over)
    if registry is None:
        return validated(RecordedConfig, recorded, "aang train")
    known = schema_of(registry).model_fields
    # Drop empty defaults of a plug-in that is no longer installed.
    kept = {name: value for name, value in recorded.items() if name in known or value}
    return _known(kept, registry)


class RecordedConfig(TrainConfig):
    """The options of a run, with those of plug-ins as they stand in its file."""

    model_config = ConfigDict(extra="allow")


def _defaults(registry: Registry) -> dict[str, str]:
    """The default names, in full if a third-party plug-in has registered one of them too."""
    ours = registry.as_meant_by(CORE)
    return {
        "space": name_in_full(DEFAULT_SPACE, ours),
        "weighter": ours.in_full("weighter", DEFAULT_WEIGHTER),
    }


def _together(from_file: Mapping[str, Any], from_options: Mapping[str, Any]) -> dict[str, Any]:
    """All options; those of primitives are merged one by one."""
    of_file, of_options = (parse_settings(o.get("set") or {}) for o in (from_file, from_options))
    return {**from_file, **from_options, "set": _merged(of_file, of_options)}


def _known(given: Mapping[str, Any], registry: Registry) -> TrainConfig:
    for name in given:
        check_plugin_option(name, registry)
    return validated(schema_of(registry), given, "aang train")


def resolve_training(
    from_file: Mapping[str, Any], from_options: Mapping[str, Any], registry: Registry
) -> TrainConfig:
    """Like :func:`resolve_config`, for a new training.

    Without a recipe, space, weighter and auxiliary task, the recipe is :data:`DEFAULT_RECIPE`.

    Raises:
        ConfigError: like :func:`resolve_config`.
        UnknownNameError: like :func:`resolve_config`.
    """
    given = {**from_file, **from_options}
    if any(given.get(name) for name in ("recipe", "space", "weighter", "aux_task")):
        return resolve_config(from_file, from_options, registry)
    recipe = registry.as_meant_by(CORE).recipes.in_full(DEFAULT_RECIPE)
    try:
        registry.recipes.find(recipe)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error}. It is what aang train does by default; --recipe, or --space and --weighter, "
            "choose something else"
        ) from error
    config = resolve_config(from_file, {**from_options, "recipe": recipe}, registry)
    # Not the user's choice, so another kind of end task than it supports may replace it.
    config.model_fields_set.discard("recipe")
    return config


def left_to_the_data(config: TrainConfig) -> set[str]:
    """The options that a run chooses by the kind of its end task, as the user gave none of them.

    A configuration file made from ``config`` must leave them out, so that a run still chooses.
    """
    left = {"task_type", "metric"} - config.model_fields_set
    return left | ({"recipe", "space", "weighter"} if _has_default_recipe(config) else set())


def without_default_recipe(config: TrainConfig, registry: Registry) -> TrainConfig | None:
    """The options with the default space and weighter in place of the default recipe.

    Options that the user set for the recipe's weighter stay, and are refused if another one trains.

    Returns:
        The options; None if the user has chosen the recipe or there is none.
    """
    if config.recipe is None or not _has_default_recipe(config):
        return None
    recipe = registry.recipes.find(config.recipe)
    own = _own_settings(recipe, registry.as_meant_by(recipe.origin.distribution))
    kept = {
        name: {o: value for o, value in of.items() if own.get(name, {}).get(o, ...) != value}
        for name, of in config.set.items()
    }
    users = {name: of for name, of in kept.items() if of}
    return config.model_copy(update={"recipe": None, "set": users, **_defaults(registry)})


def _has_default_recipe(config: TrainConfig) -> bool:
    return config.recipe is not None and "recipe" not in config.model_fields_set


def _with_recipe(
    recipe: RecipeEntry, given: Mapping[str, Any], registry: Registry
) -> dict[str, Any]:
    """Add the recipe's options to the given ones, which take precedence.

    The recipe's options for its weighter are dropped if another weighter was given, and those for
    the primitives of its space if another space was given; those for its stages of pre-training
    stay.

    Args:
        recipe: the recipe.
        given: the options of the user.
        registry: where the recipe's names are looked up, as its authors mean them.

    Raises:
        PluginError: the recipe sets an option that ``aang train`` does not have.
    """
    if unknown := sorted(set(recipe.options) - set(schema_of(registry).model_fields)):
        raise recipe.origin.fault(
            f"recipe {recipe.name}",
            f"it sets {', '.join(unknown)}, which is no option of aang train",
        )
    theirs = registry.as_meant_by(recipe.origin.distribution)
    own = dict(recipe.options)
    if "space" in own:
        own["space"] = name_in_full(str(own["space"]), theirs)
    if "weighter" in own:
        own["weighter"] = theirs.in_full("weighter", str(own["weighter"]))
    options = {**own, **given}
    settings = _own_settings(recipe, theirs)
    # Options belong under the name that the user wrote, such as "aang-plugin-tartan:static".
    weighter = str(options.get("weighter", ""))
    if (own_weighter := settings.pop(theirs.in_full("weighter", weighter), None)) is not None:
        settings[weighter] = own_weighter
    kept = {*recipe.pretraining, weighter}
    if "space" not in own or name_in_full(str(options["space"]), theirs) == own["space"]:
        kept |= {name for name in settings if theirs.stage_of(name) is not None}
    used = {name: of for name, of in settings.items() if name in kept}
    return {**options, "set": _merged(used, given["set"])}


def _own_settings(recipe: RecipeEntry, theirs: Registry) -> dict[str, Any]:
    """What a recipe sets for its stages, weighters and primitives, the latter two by full name."""

    def in_full(name: str) -> str:
        if name in recipe.pretraining:
            return name
        return theirs.in_full(theirs.stage_of(name) or "weighter", name)

    return {in_full(name): of for name, of in recipe.options.get("set", {}).items()}


def _merged(base: Settings, over: Settings) -> Settings:
    return {name: base.get(name, {}) | over.get(name, {}) for name in {**base, **over}}


def validated(schema: type[SectionT], given: Mapping[str, Any], command: str) -> SectionT:
    """The options in ``schema``, with its defaults.

    Raises:
        ConfigError: ``command`` has no such option, or a value is invalid; the message names each.
    """
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        told = (_sentence(e, command, schema.model_fields) for e in error.errors())
        raise ConfigError("; ".join(told)) from error


def _sentence(error: Any, command: str, known: Iterable[str]) -> str:
    """Word pydantic's error about an option for the user of ``command``, which knows ``known``."""
    where = ".".join(part for part in error["loc"] if isinstance(part, str))
    message = str(error["msg"]).removeprefix("Value error, ")
    if not where:
        return message
    if error["type"] == "extra_forbidden":
        return no_such_option(where, command, known)
    given = error["input"]
    shown = ", ".join(map(str, given)) if isinstance(given, tuple) else repr(given)
    return f"--{where.replace('_', '-')} {shown}: {message[:1].lower()}{message[1:]}"


def no_such_option(name: str, command: str, known: Iterable[str]) -> str:
    """The message about an option that ``command`` does not have, with a similar one if any."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{name}: there is no such option; " + (
        f"did you mean {near[0]}?"
        if near
        else f"{command} --help lists them; one of a plug-in in a file needs aang --plugin FILE.py "
        "or, in Python, AANG_LOAD_PLUGINS=FILE.py"
    )
