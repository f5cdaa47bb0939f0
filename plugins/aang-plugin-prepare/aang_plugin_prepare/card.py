"""The model card of a prepared encoder: its training text and its held-out scores."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aang.runs.encoder_training import ACCURACY, METRIC
from aang.runs.model_card import plain, table
from aang.runs.preparation_config import PreparationConfig
from huggingface_hub import ModelCardData

LISTED = 20


def preparation_card(config: PreparationConfig, result: Mapping[str, Any]) -> str:
    """``README.md`` of the folder, with the metadata header that the Hugging Face hub reads."""
    sections = [_header(config), _what(config, result), _USE, _text(result), _scores(result)]
    return "\n".join([*sections, _made(config, result)])


def _header(config: PreparationConfig) -> str:
    # A local folder is not a model on the hub.
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="fill-mask",
        base_model=None if Path(config.model).exists() else config.model,
        tags=["masked-language-modelling", "domain-adaptation", "aang"],
    )
    return f"---\n{data.to_yaml()}\n---\n"


def _what(config: PreparationConfig, result: Mapping[str, Any]) -> str:
    head = ""
    if result["fresh_language_model"]:
        head = " It came without a language-model head; the one here was made for it and fitted."
    name = plain(config.model)
    return (
        f"# {name}, prepared\n\n"
        f"{name}, trained further as a masked language model on the text below by "
        f"`aang prepare-encoder`.{head}\n"
    )


_USE = """## How to load it

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

model = AutoModelForMaskedLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
```

`aang train --model .` trains a classifier from it.
"""


def _text(result: Mapping[str, Any]) -> str:
    text = result["text"]
    files = list(text["files"].items())
    rows = [[plain(name), f"{size:,}"] for name, size in files[:LISTED]]
    if len(files) > LISTED:
        more = files[LISTED:]
        rows.append([f"and {len(more)} more", f"{sum(size for _, size in more):,}"])
    if "passes" in text:
        amount = (
            f"{text['pieces']:,} pieces of text, {text['tokens']:,} tokens; "
            f"{text['held_out']:,} pieces were held out. The others were read {text['passes']:g} "
            "times"
        )
    else:
        amount = f"{text['held_out']:,} pieces of text were held out. The others were read in order"
    return (
        "## What it has read\n\n"
        + table(["file", "bytes"], rows)
        + f"\n{amount}: {text['rows_trained']:,} rows, about {text['tokens_trained']:,} tokens. "
        f"{text['unknown_tokens']:.1%} of the tokens were unknown to the tokenizer.\n"
    )


def _scores(result: Mapping[str, Any]) -> str:
    likelihood = result[METRIC]
    rows = [
        ["loss", *(f"{-likelihood[when]:.4f}" for when in ("before", "after"))],
    ]
    if ACCURACY in result:
        rows.append(
            ["accuracy", *(f"{result[ACCURACY][when]:.4f}" for when in ("before", "after"))]
        )
    return "## Held-out text\n\nOf its masked tokens:\n\n" + table(["", "before", "after"], rows)


def _made(config: PreparationConfig, result: Mapping[str, Any]) -> str:
    rows = [[name, version(name)] for name in ("aang-core", "torch", "transformers")]
    return (
        "## How it was made\n\n"
        f"{result['steps']:,} steps of {config.batch_size} rows of at most {config.max_length} "
        f"tokens in {result['train_seconds']:,.0f} seconds, objective `{result['objective']}`, "
        f"AdamW with a rate of {config.lr:g} for the body and {config.head_lr:g} for the head, "
        f"which rose over the first {config.warmup:.0%} and then fell to nothing; "
        f"{result['precision']}, seed {config.seed}. The state of the last step is kept.\n\n"
        + table(["distribution", "version"], rows)
    )
