"""What this plug-in registers."""

from aang_core import RegisterGrid, RegisterPrimitive, RegisterRecipe, hookimpl
from aang_plugin_factored.published import AANG_TD, AANG_TD_ED


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """AANG's own weighter."""
    register(
        "factored",
        "weights shared between objectives through their primitives, learned (AANG)",
        "aang_plugin_factored.factored:Factored",
    )


@hookimpl
def aang_register_grids(register: RegisterGrid) -> None:
    """The values that the paper chooses from on dev.

    The paper tries rates of the encoder. Its code keeps that rate at 1e-4 and tries these values
    for the heads.
    """
    register(
        "paper-td",
        "the 16 settings of AANG-TD (AANG, appendix D, table 5)",
        {
            "factored.lr": (1.0, 0.1),
            "factored.end_task_lr": (0.1, 0.01),
            "factored.n": (3, 6),
            "head_lr": (1e-3, 1e-4),
            "lr": (1e-4,),
        },
    )


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """AANG's own systems."""
    register("aang-td", "AANG-TD as the authors' code trains it", options=AANG_TD)
    register("aang-td+ed", "AANG-TD+ED as the authors' code trains it", options=AANG_TD_ED)
    register(
        "x+y+z",
        "gpt-, xlnet- and bert-style objectives together, factored (AANG, table 2)",
        options={"space": "x+y+z", "weighter": "factored"},
    )
