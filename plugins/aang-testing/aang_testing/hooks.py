"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register ``new-plugin`` and ``check-plugin``."""
    register(
        "new-plugin",
        "Write a new plug-in, complete with its tests.",
        "aang_testing.new_plugin:new_plugin",
    )
    register(
        "check-plugin",
        "Check that a plug-in keeps its contracts.",
        "aang_testing.check_plugin:check_plugin",
    )
