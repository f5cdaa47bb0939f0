"""The options of a training: their schema, their files, and how they are resolved.

Public, for commands of plug-ins: :class:`TrainConfig` is the schema, and :func:`schema_of` adds the
options of plug-ins to it. :func:`resolve_config` validates options and adds those of the recipe.
:func:`resolve_training` does the same for a new training, with its defaults;
:func:`left_to_the_data` names those that depend on the kind of the end task, and
:func:`without_default_recipe` replaces a recipe that nobody asked for. :func:`read_config_file`
reads options from a file, :func:`recorded_config` reads those of a run, and :func:`refuse_trust`
refuses a file that asks to run a model's code. :func:`with_absolute_paths` gives options the same
meaning in every folder. :data:`AUXILIARY_TASKS` names the space of labelled auxiliary data,
:func:`validated` words the errors of a schema, and :func:`check_plugin_option` names the plug-in
of an option that is not there. :data:`Positive` and :data:`Count` are types for options of
plug-ins.
"""

from aang.config.paths import with_absolute_paths
from aang.config.plugin_options import check_plugin_option, schema_of
from aang.config.resolving import (
    AUXILIARY_TASKS,
    left_to_the_data,
    read_config_file,
    recorded_config,
    refuse_trust,
    resolve_config,
    resolve_training,
    validated,
    without_default_recipe,
)
from aang.config.schema import TrainConfig
from aang.config.values import Count, Positive

__all__ = [
    "AUXILIARY_TASKS",
    "Count",
    "Positive",
    "TrainConfig",
    "check_plugin_option",
    "left_to_the_data",
    "read_config_file",
    "recorded_config",
    "refuse_trust",
    "resolve_config",
    "resolve_training",
    "schema_of",
    "validated",
    "with_absolute_paths",
    "without_default_recipe",
]
