"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Two ways to combine gradients that conflict."""
    register(
        "pcgrad",
        "projects each task's gradient off those that it conflicts with (PCGrad)",
        "aang_plugin_surgery.pcgrad:PCGrad",
    )
    register(
        "cagrad",
        "steps where the task that gains least gains most, near the mean gradient (CAGrad)",
        "aang_plugin_surgery.cagrad:CAGrad",
    )
