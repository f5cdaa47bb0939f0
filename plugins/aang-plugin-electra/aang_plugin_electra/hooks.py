"""What this plug-in registers."""

from aang_core import RegisterObjective, RegisterPrimitive, hookimpl


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """The text that ELECTRA's discriminator reads."""
    register(
        "neural-lm",
        "text sampled from a language model, by default a small one trained on the task's text",
        "aang_plugin_electra.neural_lm:NeuralLm",
        provides=("text",),
    )


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """The objective of ELECTRA's discriminator."""
    register(
        "real-synthetic",
        "whether each token was replaced",
        "aang_plugin_electra.real_synthetic:RealSynthetic",
        requires=("text", "replaces-tokens"),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """ELECTRA's pre-training, as in AANG's Figure 1."""
    register(
        "electra",
        "which tokens of a language model's text were replaced (Clark et al., 2020)",
        "neural-lm/replace/bidirectional/real-synthetic",
    )
