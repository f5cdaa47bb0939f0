"""What this plug-in registers."""

from aang_core import RegisterObjective, RegisterPrimitive, hookimpl


@hookimpl
def aang_register_representations(register: RegisterPrimitive) -> None:
    """XLNet's random factorisation order."""
    register(
        "random-factorized",
        "every token sees what comes before it in a random order of the row",
        "aang_plugin_xlnet.random_factorized:RandomFactorized",
        provides=("sentence-representation", "reading-order"),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """XLNet's pre-training, and AANG's baseline."""
    register(
        "xlnet",
        "XLNet's pre-training on generic text (Yang et al., 2019)",
        "out-of-domain/no-op/random-factorized/next-token",
    )
    register("xlnet-style", "AANG's baseline Y", "task/no-op/random-factorized/denoise")
