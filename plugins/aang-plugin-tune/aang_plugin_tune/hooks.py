"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``tune``."""
    register(
        "tune",
        "Search settings on dev, and refit the best; resumable.",
        "aang_plugin_tune.command:tune",
    )
