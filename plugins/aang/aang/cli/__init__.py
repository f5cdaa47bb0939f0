"""The application's commands.

Public, for commands of plug-ins: ``training_options`` and ``parse_settings`` read options as
``aang train`` does.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.cli.train import training_options as training_options
    from aang.config.values import parse_settings as parse_settings
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
