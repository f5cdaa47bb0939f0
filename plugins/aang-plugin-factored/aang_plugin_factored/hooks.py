"""What this plug-in registers."""

from aang_core import RegisterGrid, RegisterPrimitive, RegisterRecipe, hookimpl
from aang_plugin_factored.published import AANG_TD, AANG_TD_ED, HYPERPARTISAN_TD, STATIC_TD


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
    register(
        "paper-td-ed",
        "the 9 settings of AANG-TD+ED (AANG, appendix D, table 6)",
        {
            "factored.lr": (1.0, 0.5, 0.1),
            "factored.end_task_lr": (0.1,),
            "factored.n": (6, 12, 24),
            "head_lr": (1e-4,),
            "lr": (1e-4,),
        },
    )


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """AANG's own systems."""
    register("aang-td", "AANG-TD as the authors' code trains it", options=AANG_TD)
    register("aang-td+ed", "AANG-TD+ED as the authors' code trains it", options=AANG_TD_ED)
    register(
        "aang-td-hyperpartisan",
        "aang-td with the rows that the authors give Hyperpartisan, 64 + 128, and 8 for the dev "
        "head",
        options=HYPERPARTISAN_TD,
    )
    register(
        "static-td-released",
        "Static Multitask-TD as the authors' code trains it: aang-td with weights that do not move",
        options=STATIC_TD,
    )
    register(
        "x+y+z",
        "gpt-, xlnet- and bert-style objectives together, factored (AANG, table 2)",
        options={"space": "x+y+z", "weighter": "factored"},
    )
