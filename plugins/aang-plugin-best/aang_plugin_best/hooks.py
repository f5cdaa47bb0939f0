"""What this plug-in registers."""

from aang_core import RegisterCandidate, RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the command ``best``."""
    register(
        "best",
        "Find the best way to a classifier, and train it on all labels.",
        "aang_plugin_best.command:best",
    )


@hookimpl
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Register what needs no other plug-in: linear models, and plain fine-tuning."""
    register(
        "tf-idf",
        "logistic regression on TF-IDF of words and characters",
        "aang_plugin_best.quick:tf_idf",
    )
    register(
        "frozen-encoder",
        "logistic regression on the mean of the encoder's tokens, without training it",
        "aang_plugin_best.quick:frozen_encoder",
    )
    register("plain", "plain fine-tuning", options={"weighter": "single-task"})
