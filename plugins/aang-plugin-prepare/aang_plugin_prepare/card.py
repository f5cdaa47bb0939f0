"""The model card of a prepared encoder: its training text and its held-out scores."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang_plugin_hub.card import filled
from huggingface_hub import ModelCardData

from aang_plugin_prepare.config import PreparationConfig

LISTED = 20


def preparation_card(config: PreparationConfig, result: Mapping[str, Any]) -> str:
    """``README.md`` of the folder, with the metadata header that the Hugging Face hub reads."""
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="fill-mask",
        # A local folder is not a model on the hub.
        base_model=None if Path(config.model).exists() else config.model,
        tags=["masked-language-modelling", "domain-adaptation", "aang"],
    )
    return filled(
        files("aang_plugin_prepare") / "card.md",
        header=data.to_yaml(),
        config=config,
        result=result,
        files=list(result["text"]["files"].items()),
        listed=LISTED,
    )
