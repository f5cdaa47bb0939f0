"""What this plug-in registers."""

from aang_core import RegisterPrimitive, RegisterRecipe, hookimpl
from aang_plugin_factored.published import AANG_TD, AANG_TD_ED


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """AANG's own way to weight."""
    register(
        "factored",
        "weights shared between objectives through their primitives, learned (AANG)",
        "aang_plugin_factored.factored:Factored",
    )


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """AANG's own systems."""
    register("aang-td", "AANG-TD as the authors' code trains it", options=AANG_TD)
    register("aang-td+ed", "AANG-TD+ED as the authors' code trains it", options=AANG_TD_ED)
    register(
        "x+y+z",
        "the three together, factored (AANG, table 2)",
        options={"space": "x+y+z", "weighter": "factored"},
    )
