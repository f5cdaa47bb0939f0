"""What this plug-in registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``prepare-encoder``."""
    register(
        "prepare-encoder",
        "Train an encoder further on unlabelled text.",
        "aang_plugin_prepare.command:prepare_encoder",
    )
