"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """AANG's own weighter."""
    register(
        "factored",
        "weights shared between objectives through their primitives, learned (AANG)",
        "aang_plugin_factored.factored:Factored",
    )
