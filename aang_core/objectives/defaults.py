"""The names that the core uses if the user chooses none.

Each is a fixed name that a plug-in registers, not "whatever is installed and fits": installing a
plug-in must not change what a command trains, or the names of its weights. If the plug-in is
missing, the error says what to install.
"""

DEFAULT_RECIPE = "contrast"
"""The recipe of ``aang train`` without a recipe, space, weighter and auxiliary task."""

DEFAULT_SPACE = "td"
"""The default of ``--space``."""

DEFAULT_WEIGHTER = "factored"
"""The default of ``--weighter``."""

AUXILIARY_OBJECTIVE = "no-op/bidirectional/own-label"
"""An auxiliary task's objective, after the task's name: predict its labels from its text."""

PREPARATION = "dapt"
"""The named objective of ``aang prepare-encoder``: BERT's, on in-domain text."""
