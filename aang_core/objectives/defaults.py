"""What the core takes by name where the user says nothing: the one place where it does.

Each is the name of something that a plug-in registers, and not "whatever is installed and fits":
installing a plug-in must not change what a command trains, or what its weights are called. Where
the plug-in is missing, looking the name up says what to install.
"""

DEFAULT_RECIPE = "contrast"
"""What ``aang train`` does where neither recipe, space, weighter nor auxiliary task is given."""

DEFAULT_SPACE = "td"
"""The space of a training that names none."""

DEFAULT_WEIGHTER = "factored"
"""The weighter of a training that names none."""

AUXILIARY_OBJECTIVE = "no-op/bidirectional/own-label"
"""What is learned from an auxiliary task, behind its name: to predict its labels from its text."""

PREPARATION = "dapt"
"""The named objective that ``aang prepare-encoder`` trains with: BERT's, on in-domain text."""
