"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Two weighters that train branches and look at dev afterwards."""
    register(
        "forkmerge",
        "trains a branch per auxiliary task and merges them by dev score (ForkMerge)",
        "aang_plugin_fork.forkmerge:ForkMerge",
    )
    register(
        "tapweight",
        "weighs objectives by the dev loss after fine-tuning on them (TapWeight)",
        "aang_plugin_fork.tapweight:TapWeight",
    )
