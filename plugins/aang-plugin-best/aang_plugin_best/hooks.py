"""What this plug-in registers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core import RegisterCandidate, RegisterCommand, hookimpl

if TYPE_CHECKING:
    import torch


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
    """Register the candidates that need no other plug-in: linear models, and plain fine-tuning."""
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


@hookimpl
def aang_open_classifier(source: Path, device: "torch.device", trust_remote_code: bool) -> Any:
    """Open the folder of a search, or several models that it has deployed."""
    # The rest takes a second to import, and most folders are not this plug-in's.
    if not any((source / name).is_file() for name in ("best.json", "clock.json", "together.json")):
        return None
    from aang_plugin_best.deploy import open_classifier

    return open_classifier(source, device, trust_remote_code)
