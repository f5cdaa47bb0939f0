"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """A published bandit over tasks, and one over the primitives that objectives are made of."""
    register(
        "autosem",
        "one task at a time, drawn by how often the dev score did not fall after it (AutoSeM)",
        "aang_plugin_bandit.autosem:AutoSem",
    )
    register(
        "factored-bandit",
        "tries sets of objectives, credits what the dev score gained to their primitives",
        "aang_plugin_bandit.factored_bandit:FactoredBandit",
    )
