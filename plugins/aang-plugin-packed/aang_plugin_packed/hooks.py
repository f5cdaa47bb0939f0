"""What this plug-in registers."""

from aang_core import RegisterTarget, hookimpl


@hookimpl
def aang_register_engines(register: RegisterTarget) -> None:
    """The engine that runs the rows of all tasks together."""
    register(
        "packed",
        "the rows of all tasks in one pass, gradients split by task at each module",
        "aang_plugin_packed.packed:PackedEngine",
    )
