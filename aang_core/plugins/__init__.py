"""Find, load, isolate and list plug-ins.

Phase one finds the entry points of the group ``aang`` without importing anything, and sorts them,
so that what happens does not depend on the order of the path. Phase two loads each plug-in alone:
what it registers is staged first and committed only once all its hooks have run. A plug-in that
fails registers nothing, and takes neither another plug-in nor the command down with it.
"""

from aang_core.plugins.loading import PluginRecord, Plugins, Status, load_plugins

__all__ = ["PluginRecord", "Plugins", "Status", "load_plugins"]
