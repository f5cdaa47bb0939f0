"""Configuration files: options by name in YAML."""

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
