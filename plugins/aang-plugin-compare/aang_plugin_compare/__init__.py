"""Comparisons of methods × tasks × seeds: planning, training in separate processes, testing.

The command is ``aang_plugin_compare.command:compare``. Nothing is imported here, so that listing
plug-ins stays light.
"""
