"""The version of the plug-in interface that this core supports."""

from aang_core.errors import PluginError

PLUGIN_API = 1
"""Increased when plug-ins written for the previous version would no longer work."""

DECLARATION = "AANG_PLUGIN_API"
"""Name of the constant with which a plug-in's module declares the version it was written for."""


def check_plugin_api(module: object) -> None:
    """Refuse a plug-in that was written for another version; without a declaration it is 1.

    Raises:
        PluginError: the versions differ, or the declaration is not a whole number.
    """
    written_for = getattr(module, DECLARATION, 1)
    if not isinstance(written_for, int) or isinstance(written_for, bool):
        raise PluginError(f"{DECLARATION} is {written_for!r}; it must be a whole number")
    if written_for != PLUGIN_API:
        other = "newer" if written_for > PLUGIN_API else "older"
        remedy = "update aang-core" if written_for > PLUGIN_API else "update the plug-in"
        raise PluginError(
            f"it was written for version {written_for} of the plug-in interface, which is {other} "
            f"than this core's {PLUGIN_API}; {remedy}"
        )
