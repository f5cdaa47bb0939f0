"""Settings: values of some options that a grid or a search has chosen, by name."""

from collections.abc import Mapping, Sequence
from typing import Any


def with_setting(options: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The options, replaced by those of the setting.

    Args:
        options: options of ``aang train``.
        setting: values by option; ``NAME.OPTION`` goes into ``set``.
    """
    changed = {**options, "set": {name: dict(of) for name, of in options.get("set", {}).items()}}
    for name, value in setting.items():
        primitive, dot, option = name.rpartition(".")
        if dot:
            changed["set"].setdefault(primitive, {})[option] = value
        else:
            changed[name] = value
    return changed


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
