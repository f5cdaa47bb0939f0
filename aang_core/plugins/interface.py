"""The version of the plug-in interface that this core supports."""

from aang_core.errors import PluginError

PLUGIN_API = 2
"""Increased when plug-ins written for the previous version would no longer work."""

DECLARATION = "AANG_PLUGIN_API"
"""Name of the constant with which a plug-in's module declares the version it was written for."""

CHANGES = f"docs/plugin-interface/version-{PLUGIN_API}.md"
"""The page of the documentation that says what the latest version changed."""


def check_plugin_api(module: object) -> None:
    """Refuse a plug-in that was written for another version; one without a declaration may load.

    Raises:
        PluginError: the versions differ, or the declaration is not a whole number.
    """
    written_for = getattr(module, DECLARATION, PLUGIN_API)
    if not isinstance(written_for, int) or isinstance(written_for, bool):
        raise PluginError(f"{DECLARATION} is {written_for!r}; it must be a whole number")
    if written_for > PLUGIN_API:
        raise PluginError(
            f"it was written for version {written_for} of the plug-in interface, which is newer "
            f"than this core's {PLUGIN_API}; update aang-core"
        )
    if written_for < PLUGIN_API:
        raise PluginError(
            f"it was written for version {written_for} of the plug-in interface, which is older "
            f"than this core's {PLUGIN_API}; update the plug-in. For its authors: {CHANGES} says "
            f"what changed; when the plug-in suits that, declare {DECLARATION} = {PLUGIN_API}"
        )
