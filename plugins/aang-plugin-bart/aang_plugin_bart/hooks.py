"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """The corruptions of BART's section 2.2 that move tokens."""
    register("delete", "random tokens are deleted", "aang_plugin_bart.delete:Delete")
    register(
        "permute-sentences",
        "the sentences of a text come in random order",
        "aang_plugin_bart.permute_sentences:PermuteSentences",
    )
    register(
        "infill",
        "spans of tokens become a single mask token each",
        "aang_plugin_bart.infill:Infill",
        provides=("masks-tokens",),
    )
