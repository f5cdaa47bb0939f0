"""What this plug-in registers."""

from aang_core import RegisterCommand, RegisterObjective, RegisterPrimitive, hookimpl


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """Register in-domain text, the data of continued pre-training."""
    register(
        "s2orc",
        "in-domain text from the S2ORC, S2AG, peS2o or plain text files named with --domain",
        "aang_plugin_s2orc.source:S2orc",
        provides=("text", "reads:domain"),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """Register adaptation to the domain."""
    register(
        "dapt",
        "BERT's objective on in-domain text (Gururangan et al., 2020)",
        "s2orc/bert-op/bidirectional/denoise",
    )


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``prepare-domain``."""
    register(
        "prepare-domain",
        "Draw in-domain text for a task from a corpus.",
        "aang_plugin_s2orc.domain.command:prepare_domain",
    )
