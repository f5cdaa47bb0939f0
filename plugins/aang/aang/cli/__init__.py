"""The application's commands.

Public, for commands of plug-ins: ``training_options`` and ``parse_settings`` read options as
``aang train`` does.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.cli.train import training_options
    from aang.config.values import parse_settings

__all__ = ["parse_settings", "training_options"]

_HOMES = {
    "aang.cli.train": "training_options",
    "aang.config.values": "parse_settings",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
