"""Options as users write them: YAML files, and ``NAME.OPTION=VALUE`` for primitives."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang_core.errors import ConfigError
from aang_core.storage.yaml_source import NumberLoader, parse_yaml


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


def parse_settings(settings: Any) -> dict[str, dict[str, Any]]:
    """Options by name, from a mapping or from ``NAME.OPTION=VALUE`` each, with VALUE in YAML.

    Raises:
        ConfigError: they have another form.
    """
    if isinstance(settings, Mapping):
        if not all(isinstance(options, Mapping) for options in settings.values()):
            raise ConfigError(f"--set {settings}: give it as in {{factored: {{lr: 0.5}}}}")
        return {str(name): dict(options) for name, options in settings.items()}
    parsed: dict[str, dict[str, Any]] = {}
    for setting in settings if isinstance(settings, list | tuple) else [settings]:
        target, equals, value = str(setting).partition("=")
        name, dot, option = target.rpartition(".")
        if not (equals and dot and name and option):
            raise ConfigError(f"--set {setting}: give NAME.OPTION=VALUE, such as factored.lr=0.5")
        parsed.setdefault(name, {})[option.replace("-", "_")], _ = parse_yaml(
            value, f"--set {setting}", NumberLoader
        )
    return parsed
