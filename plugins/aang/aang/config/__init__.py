"""The options of a training: their schema, their files, and how they are resolved.

Public, for commands of plug-ins: :class:`TrainConfig` is the schema, and :func:`schema_of` adds the
options of plug-ins to it. :func:`resolve_config` validates options and adds those of the recipe.
:func:`resolve_training` does the same for a new training, with its defaults;
:func:`left_to_the_data` names those that depend on the kind of the end task, and
:func:`without_default_recipe` replaces the default recipe. :func:`read_config_file` reads options
from a file, :func:`recorded_config` reads those of a run, and :func:`refuse_trust` refuses a file
that asks to run a model's code. :func:`with_absolute_paths` gives options the same meaning in every
folder. :data:`AUXILIARY_TASKS` names the space of labelled auxiliary data, :func:`validated` words
the errors of a schema, and :func:`check_plugin_option` names the plug-in of an option that is not
there. :data:`Positive` and :data:`Count` are types for options of plug-ins.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.config.paths import with_absolute_paths as with_absolute_paths
    from aang.config.plugin_options import check_plugin_option as check_plugin_option
    from aang.config.plugin_options import schema_of as schema_of
    from aang.config.resolving import AUXILIARY_TASKS as AUXILIARY_TASKS
    from aang.config.resolving import left_to_the_data as left_to_the_data
    from aang.config.resolving import read_config_file as read_config_file
    from aang.config.resolving import recorded_config as recorded_config
    from aang.config.resolving import refuse_trust as refuse_trust
    from aang.config.resolving import resolve_config as resolve_config
    from aang.config.resolving import resolve_training as resolve_training
    from aang.config.resolving import validated as validated
    from aang.config.resolving import without_default_recipe as without_default_recipe
    from aang.config.schema import TrainConfig as TrainConfig
    from aang.config.values import Count as Count
    from aang.config.values import Positive as Positive
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
