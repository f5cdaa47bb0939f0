"""Options of ``aang train`` from several places, and values of some that a grid has chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang.config import TrainConfig

PUSHING = tuple(n for n in TrainConfig.model_fields if n == "push_to_hub" or n.startswith("hub_"))
"""Options that push a run's model, which would push one run over another."""

WHY_NOT_PUSHED = "one run of several would be pushed; push the one you choose with aang push"


def layered(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """The options of all parts, where those of later parts replace those of earlier ones.

    Args:
        *parts: options of ``aang train``, with hyphens or underscores. What is in ``set`` is
            replaced option by option.

    Returns:
        The options with underscores; ``set`` is always among them.
    """
    plain = [{name.replace("-", "_"): value for name, value in part.items()} for part in parts]
    options = {name: value for part in plain for name, value in part.items()}
    return {**options, "set": merged_settings([part.get("set") or {} for part in plain])}


def with_setting(options: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The options, replaced by those of the setting.

    Args:
        options: options of ``aang train``, with underscores.
        setting: values by option, with hyphens or underscores; ``NAME.OPTION`` goes into ``set``.
    """
    changed = {**options, "set": {name: dict(of) for name, of in options.get("set", {}).items()}}
    for name, value in setting.items():
        primitive, dot, option = name.rpartition(".")
        if dot:
            changed["set"].setdefault(primitive, {})[option] = value
        else:
            changed[name.replace("-", "_")] = value
    return changed


def option_name(name: str) -> str:
    """The name of an option with underscores for dashes, but not in the name of a primitive."""
    primitive, dot, option = name.strip().rpartition(".")
    return f"{primitive}{dot}{option.replace('-', '_')}"


def given_names(options: Mapping[str, Any]) -> set[str]:
    """The options that have a value, with ``NAME.OPTION`` for each of those in ``set``."""
    sets = options.get("set") or {}
    return {option_name(name) for name in options} | {
        option_name(f"{name}.{option}") for name, of in sets.items() for option in of
    }


def setting_text(setting: Mapping[str, Any]) -> str:
    """The setting as text for people."""
    return ", ".join(f"{name}={value}" for name, value in setting.items())


def merged_settings(settings: Sequence[Any]) -> Any:
    """Options of primitives and weighters, where later ones replace earlier ones.

    A part that is not a mapping of mappings is returned unchanged; the schema then rejects it.
    """
    merged: dict[str, dict[str, Any]] = {}
    for part in settings:
        if not isinstance(part, Mapping) or not all(isinstance(v, Mapping) for v in part.values()):
            return part
        for name, options in part.items():
            merged[name] = {**merged.get(name, {}), **options}
    return merged
