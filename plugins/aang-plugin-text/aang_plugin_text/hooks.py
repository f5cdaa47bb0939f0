"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """Text that has nothing to do with the end task."""
    register(
        "out-of-domain",
        "generic text from the plain text files named with --out-of-domain",
        "aang_plugin_text.out_of_domain:OutOfDomain",
        provides=("text", "reads:out-of-domain"),
    )
