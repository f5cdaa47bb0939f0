"""Options of primitives and weighters as users write them: ``NAME.OPTION=VALUE``."""

from collections.abc import Sequence
from typing import Any

from aang_core.errors import ConfigError
from aang_core.storage.yaml_source import NumberLoader, parse_yaml


def parse_settings(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by name, from ``NAME.OPTION=VALUE`` each, with VALUE in YAML.

    Raises:
        ConfigError: one is malformed.
    """
    parsed: dict[str, dict[str, Any]] = {}
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, dot, option = target.rpartition(".")
        if not (equals and dot and name and option):
            raise ConfigError(f"--set {setting}: give NAME.OPTION=VALUE, such as factored.lr=0.5")
        parsed.setdefault(name, {})[option.replace("-", "_")], _ = parse_yaml(
            value, f"--set {setting}", NumberLoader
        )
    return parsed
