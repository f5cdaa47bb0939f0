"""What this plug-in registers."""

from aang_core import RegisterTarget, hookimpl


@hookimpl
def aang_register_tasks(register: RegisterTarget) -> None:
    """Register ``demo`` and ``word-order``."""
    register(
        "demo",
        "which package of the standard library does a paragraph document?",
        "aang_plugin_demo.task:demo",
    )
    register(
        "word-order",
        "is a sentence of documentation as it was written, or are its words shuffled?",
        "aang_plugin_demo.word_order:word_order",
    )
