"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """What ELECTRA's discriminator is trained for."""
    register(
        "real-synthetic",
        "whether each token was replaced",
        "aang_plugin_electra.real_synthetic:RealSynthetic",
        requires=("text", "replaces-tokens"),
    )
