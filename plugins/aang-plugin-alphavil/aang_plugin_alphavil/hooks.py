"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """The paper's weighter, and the one that it is compared with."""
    register(
        "alpha-vil",
        "mixes the updates of tasks trained alone so that the dev loss falls most (αVIL)",
        "aang_plugin_alphavil.alpha_vil:AlphaVil",
    )
    register(
        "diw",
        "re-weights and retrains until the dev score is beaten",
        "aang_plugin_alphavil.diw:Diw",
    )
