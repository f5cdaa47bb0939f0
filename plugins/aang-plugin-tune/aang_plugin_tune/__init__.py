"""Searches over options, recipes and grids: Optuna proposes settings, dev scores choose.

The command is ``aang_plugin_tune.command:tune``. Nothing is imported here, so that listing plug-ins
stays light.
"""
