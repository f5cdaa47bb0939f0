"""Find, load, isolate and list plug-ins.

Phase one finds the entry points of the group ``aang`` without importing anything, and sorts them,
so that the result does not depend on the order of the import path. Phase two loads each plug-in
separately: its registrations are staged, and committed only when all its hooks have run. A plug-in
that fails registers nothing; the other plug-ins and the command are not affected.
"""

from aang_core.plugins.loading import PluginRecord, Plugins, Status, load_plugins

__all__ = ["PluginRecord", "Plugins", "Status", "load_plugins"]
