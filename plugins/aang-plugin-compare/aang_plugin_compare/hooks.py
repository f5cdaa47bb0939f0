"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``compare``."""
    register(
        "compare",
        "Compare methods over tasks and seeds; resumable.",
        "aang_plugin_compare.command:compare",
    )
