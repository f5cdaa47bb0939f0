"""What this plug-in registers."""

from aang_core import RegisterTarget, hookimpl


@hookimpl
def aang_register_dev_heads(register: RegisterTarget) -> None:
    """Other rows than remembered ones, and another fit than AdamW's."""
    register(
        "drawn",
        "fitted to end-task training rows drawn for it, as in AANG's code",
        "aang_plugin_dev_heads.drawn:drawn",
    )
    register(
        "logistic",
        "a penalised logistic regression, fitted to convergence",
        "aang_plugin_dev_heads.logistic:logistic",
    )
