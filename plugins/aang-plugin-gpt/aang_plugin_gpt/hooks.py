"""What this plug-in registers."""

from aang_core import RegisterObjective, RegisterPrimitive, hookimpl


@hookimpl
def aang_register_representations(register: RegisterPrimitive) -> None:
    """The two reading directions."""
    register(
        "left-to-right",
        "every token sees itself and what is before it",
        "aang_plugin_gpt.left_to_right:LeftToRight",
        provides=("directional", "reading-order"),
    )
    register(
        "right-to-left",
        "every token sees itself and what is after it",
        "aang_plugin_gpt.right_to_left:RightToLeft",
        provides=("directional", "reading-order"),
    )


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """The objective of language models."""
    register(
        "next-token",
        "the token that comes next in the order in which the row is read",
        "aang_plugin_gpt.next_token:NextToken",
        requires=("text", "reading-order"),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """GPT's and ELMo's pre-training, and AANG's baseline."""
    register(
        "gpt",
        "GPT's pre-training on generic text (Radford et al., 2018)",
        "out-of-domain/no-op/left-to-right/next-token",
    )
    register(
        "elmo",
        "ELMo's pre-training on generic text, in both directions (Peters et al., 2018)",
        "out-of-domain/no-op/left-to-right/next-token",
        "out-of-domain/no-op/right-to-left/next-token",
    )
    register("gpt-style", "AANG's baseline X", "task/no-op/left-to-right/denoise")
