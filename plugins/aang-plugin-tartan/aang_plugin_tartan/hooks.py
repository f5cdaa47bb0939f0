"""What this plug-in registers."""

from aang_core import RegisterPrimitive, RegisterRecipe, hookimpl


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
def aang_register_recipes(register: RegisterRecipe) -> None:
    """The baselines that train with these weighters."""
    register(
        "multitask",
        "all objectives in every step, each weighing as much as the end task: MT-TARTAN, "
        "λ_e = 1/(n + 1) (TARTAN, section 3.1)",
        options={"weighter": "static"},
    )
    register(
        "static-td",
        "n = 3 objectives of td sampled a step, 1/n each, λ_e = 0.5: Static Multitask-TD (AANG, "
        "section 7.3)",
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
