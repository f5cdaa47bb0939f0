"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``diagnose``."""
    register(
        "diagnose",
        "Measure how near each objective is to the end task, without training.",
        "aang_plugin_diagnose.command:diagnose",
    )
