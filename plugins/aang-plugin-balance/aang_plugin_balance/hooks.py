"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Three ways to balance losses."""
    register(
        "uncertainty",
        "weighs each task by the inverse of its learned variance (Kendall et al.)",
        "aang_plugin_balance.uncertainty:Uncertainty",
    )
    register(
        "gradnorm",
        "balances the lengths of gradients by how fast each task learns (GradNorm)",
        "aang_plugin_balance.gradnorm:GradNorm",
    )
    register(
        "dwa",
        "gives tasks more weight whose losses fall slowly (Dynamic Weight Average)",
        "aang_plugin_balance.dwa:DynamicWeightAverage",
    )
