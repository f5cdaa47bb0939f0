"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """In-domain text, the data that continued pre-training is done on."""
    register(
        "s2orc",
        "in-domain text from the S2ORC, S2AG, peS2o or plain text files named with --domain",
        "aang_plugin_s2orc.source:S2orc",
        provides=("text",),
    )
