"""What this plug-in registers."""

from aang_core import RegisterCandidate, RegisterPrimitive, hookimpl


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Agreement with the prediction for the clean text, and with its class."""
    register(
        "consistency",
        "predict for a corrupted text what the end task's head predicts for the clean one",
        "aang_plugin_consistency.consistency:Consistency",
        provides=("several-views",),
        requires=("text", "end-task:single-label", "sentence-representation"),
    )
    register(
        "pseudo-label",
        "predict the class that the end task's head gives to the clean text, where it is sure",
        "aang_plugin_consistency.pseudo_label:PseudoLabel",
        provides=("several-views",),
        requires=("text", "end-task:single-label", "sentence-representation"),
    )


@hookimpl
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Consistency over unlabelled text."""
    register(
        "consistency",
        "agreement on clean and corrupted unlabelled texts, beside fine-tuning",
        options={"space": "unlabelled/mask/bidirectional/consistency", "weighter": "static"},
        needs="unlabelled",
        cost=2.5,
    )
