"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_representations(register: RegisterPrimitive) -> None:
    """XLNet's random factorisation order."""
    register(
        "random-factorized",
        "every token sees what comes before it in a random order of the row",
        "aang_plugin_xlnet.random_factorized:RandomFactorized",
        provides=("sentence-representation", "reading-order"),
    )
