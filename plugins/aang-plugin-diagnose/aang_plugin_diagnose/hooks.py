"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the commands ``diagnose`` and ``doctor``."""
    register(
        "diagnose",
        "Measure how near each objective is to the end task, without training.",
        "aang_plugin_diagnose.command:diagnose",
    )
    register(
        "doctor",
        "Show versions, devices and plug-ins, to paste into an issue.",
        "aang_plugin_diagnose.doctor:doctor",
    )
