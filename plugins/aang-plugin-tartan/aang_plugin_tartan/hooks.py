"""What this plug-in registers."""

from aang_core import RegisterGrid, RegisterPrimitive, RegisterRecipe, RegisterSpace, hookimpl
from aang_plugin_tartan.published import (
    META_GRID,
    META_TARTAN,
    MT_GRID,
    MT_TARTAN,
    ONE_TASK_GRID,
    SPACE,
)


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """The paper's two weighters."""
    register(
        "static", "fixed weights, equal by default (MT-TARTAN)", "aang_plugin_tartan.static:Static"
    )
    register(
        "meta-tartan",
        "one weight per task, learned from the dev gradient (META-TARTAN)",
        "aang_plugin_tartan.meta_tartan:MetaTartan",
    )


@hookimpl
def aang_register_spaces(register: RegisterSpace) -> None:
    """The paper's main setting."""
    register(
        SPACE,
        "dapt and tapt together, TARTAN's main setting",
        {
            "data": ["s2orc", "task"],
            "transform": ["bert-op"],
            "representation": ["bidirectional"],
            "output": ["denoise"],
        },
    )


@hookimpl
def aang_register_grids(register: RegisterGrid) -> None:
    """The values that the paper tries, and those that AANG tries with this weighter."""
    register("paper-mt-tartan", "the 18 settings of MT-TARTAN (TARTAN, section 4)", MT_GRID)
    register("paper-meta-tartan", "the 144 settings of META-TARTAN (TARTAN, section 4)", META_GRID)
    register(
        "paper-one-task",
        "the 9 settings of META-TARTAN with one auxiliary task (AANG, appendix D, table 7)",
        ONE_TASK_GRID,
    )


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """The paper's systems, and baselines that train with these weighters."""
    register(
        "tartan-mt",
        "MT-TARTAN with in-domain text and the task's own, as the authors' scripts train it",
        options=MT_TARTAN,
    )
    register(
        "tartan-meta",
        "META-TARTAN with in-domain text and the task's own, as the authors' scripts train it",
        options=META_TARTAN,
    )
    register(
        "multitask",
        "all objectives in every step, each weighing as much as the end task: MT-TARTAN, "
        "λ_e = 1/(n + 1) (TARTAN, section 3.1)",
        options={"weighter": "static"},
    )
    register(
        "static-td",
        "n = 3 objectives of td sampled a step, 1/n each: Static Multitask-TD (AANG, section 7.3), "
        "with λ_e = 0.5 as in the authors' code",
        options={
            "space": "td",
            "weighter": "static",
            "set": {"static": {"n": 3, "end_task_weight": 0.5}},
        },
    )
    for letter, style, how in (
        ("X", "gpt-style", "left-to-right"),
        ("Y", "xlnet-style", "random-order"),
        ("Z", "bert-style", "masked"),
    ):
        register(
            style,
            f"META-TARTAN with {how} language modelling: AANG's baseline {letter}",
            options={"space": style, "weighter": "meta-tartan"},
        )
