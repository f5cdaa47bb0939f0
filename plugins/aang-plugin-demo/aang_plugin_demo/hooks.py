"""What this plug-in registers."""

from aang_core import RegisterTarget, hookimpl


@hookimpl
def aang_register_tasks(register: RegisterTarget) -> None:
    """Register ``demo``."""
    register(
        "demo",
        "which package of the standard library does a paragraph document?",
        "aang_plugin_demo.task:demo",
    )
