"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """The paper's two weighters, and its baseline without auxiliary tasks."""
    register(
        "static",
        "fixed weights, equal by default (MT-TARTAN)",
        "aang_plugin_tartan.static:Static",
    )
    register(
        "meta-tartan",
        "one weight per task, learned from the dev gradient (META-TARTAN)",
        "aang_plugin_tartan.meta_tartan:MetaTartan",
    )
    register(
        "single-task",
        "the end task alone: plain fine-tuning",
        "aang_plugin_tartan.single_task:SingleTask",
    )
