"""Methods × tasks × seeds: planned, run in processes of their own, and compared honestly.

The command is ``aang_plugin_compare.command:compare``. Nothing is imported here, so that listing
plug-ins stays light.
"""
