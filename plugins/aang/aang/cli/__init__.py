"""The application's commands.

Public, for commands of plug-ins: :func:`aang.cli.train.training_options` reads options as ``aang
train`` does.
"""
