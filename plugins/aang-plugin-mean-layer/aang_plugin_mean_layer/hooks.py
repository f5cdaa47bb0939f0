"""The option ``--mean-layer``, and the layer that it adds to an encoder."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core import ConfigError, ModelError, RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang import TextModel, TrainedPart
    from torch import Tensor

# Each of these linear layers begins as a multiple of the identity. Queries of zero attend to all
# tokens alike; keys stay those of the last layer, since queries would learn nothing from keys of
# zero. With 8 the mean outweighs the token itself, which the layer adds to it. The module named
# before them is the first one that needs only the first token.
_BERT = (
    "attention.output",
    {
        "attention.self.query": 0,
        "attention.self.value": 1,
        "attention.output.dense": 8,
        "output.dense": 0,
    },
)
_DISTILBERT = (
    "sa_layer_norm",
    {"attention.q_lin": 0, "attention.v_lin": 1, "attention.out_lin": 8, "ffn.lin2": 0},
)
# All layers share a bias for positions, which makes the mean a weighted one: with all-mpnet-base-v2
# and texts of SciERC, its cosine with the plain mean is 0.97; that of the first token is 0.84.
_MPNET = (
    "attention.LayerNorm",
    {"attention.attn.q": 0, "attention.attn.v": 1, "attention.attn.o": 8, "output.dense": 0},
)
_LAYERS = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra"), _BERT),
    "distilbert": _DISTILBERT,
    "mpnet": _MPNET,
}

_POOLING = "1_Pooling/config.json"


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register the option."""
    register(
        "mean_layer",
        "add a layer whose first token begins as the mean of all tokens, for sentence encoders; "
        "default: with the recipe contrast, where the encoder's folder says that it is one",
        bool,
    )


@hookimpl
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Refuse adapters, which are saved for the encoder without the layer."""
    if options["mean_layer"] and options.get("lora") is not None:
        raise ConfigError(
            "--mean-layer: does not go with --lora, whose adapters fit the encoder without that "
            "layer; leave one of them out, or use --freeze-layers"
        )


@hookimpl
def aang_prepare_model(
    model: "TextModel", options: Mapping[str, Any], stage: str | None
) -> "TrainedPart | None":
    """Add the layer, for the main training alone: models of stages keep the encoder's form.

    The layer is a copy of the last one, so no weights are drawn. Its first token begins as
    LayerNorm(8 · mean + first token). A classifier reads no other token of it, so none is computed;
    objectives that predict tokens read the others from the layer below, not mixed.

    Raises:
        ModelError: the encoder has other layers, a head of the end task's own classes, or a damaged
            file about its sentence vectors; or the end task has classes of words.
    """
    wanted = options["mean_layer"]
    if wanted is False or stage is not None:
        return None
    from aang import TrainedPart
    from aang.modeling import layers_of
    from torch import nn

    base = model.body.base
    layers = layers_of(model.body)
    form = _LAYERS.get(base.config.model_type)
    if wanted is None:
        if form is None or not _is_default(options):
            return None
        pooled = _is_pooled(options["model"])
        if pooled is None:
            return TrainedPart(
                f"no mean layer is added, since {_POOLING} of {options['model']}, which says "
                "whether it is made for one, cannot be read offline; --mean-layer adds it"
            )
        if not pooled:
            return None
    if layers is None or form is None:
        of_its_own = hasattr(base.config, "classifier_pooling")
        raise ModelError(
            f"--mean-layer: {type(base).__name__} "
            + ("has classifier_pooling instead" if of_its_own else "has layers of another form")
            + "; leave the option out, or use a BERT, RoBERTa, ELECTRA, DistilBERT or MPNet"
        )
    if type(model.classifier.model).__name__.endswith("ForTokenClassification"):
        raise ModelError("--mean-layer: is for classes of whole texts, not of words; leave it out")
    if model.head_origin is not None and model.head_origin.startswith("that of "):
        raise ModelError(
            f"--mean-layer: {options['model']} has a head of this task's classes, trained without "
            "a further layer; leave the option out, or use the encoder that it was trained from"
        )
    of_one_token, beginnings = form
    layer = copy.deepcopy(layers[-1])
    for name, module in layer.named_modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear) and name in beginnings:
            nn.init.eye_(module.weight)
            module.weight.data.mul_(beginnings[name])
            nn.init.zeros_(module.bias)
    layer.get_submodule(of_one_token).register_forward_pre_hook(_only_first)
    layer.register_forward_hook(_with_others)
    layers.append(layer)
    base.config.num_hidden_layers += 1
    return TrainedPart("a layer is added whose first token begins as the mean of all tokens")


def _only_first(module: Any, hidden: tuple["Tensor", ...]) -> tuple["Tensor", ...]:
    """The first token ``[B, 1, H]`` of everything that a module is given."""
    return tuple(states[:, :1] for states in hidden)


def _with_others(layer: Any, given: tuple[Any, ...], output: Any) -> Any:
    """Hidden states ``[B, T, H]``: the layer's first token and those that it was given."""
    import torch

    if isinstance(output, tuple):  # MPNet's
        return (_with_others(layer, given, output[0]), *output[1:])
    return torch.cat([output, given[0][:, 1:]], dim=1)


def _is_default(options: Mapping[str, Any]) -> bool:
    """Whether a sentence encoder gets the layer if the option is not given.

    Adapters fit the encoder without it, and random weights have no meaning to average.
    """
    others = options["from_scratch"] or options.get("lora") is not None
    return options["recipe"] in ("contrast", "aang-plugin-contrast:contrast") and not others


def _is_pooled(source: str | None) -> bool | None:
    """Whether the encoder's pooling file says that a text's vector is the mean of its tokens.

    Args:
        source: folder or hub name; None for the demo's encoder.

    Returns:
        None if the file that says so is on the hub, which cannot be reached.

    Raises:
        ModelError: that file is damaged, or the hub refuses it.
    """
    from aang.modeling.loading import loading
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    if source is None:
        return False
    path = Path(source) / _POOLING
    with loading(source, _POOLING):
        if not Path(source).is_dir():
            try:
                path = Path(hf_hub_download(source, _POOLING))
            except LocalEntryNotFoundError:
                return None
            except EntryNotFoundError:
                return False
        if not path.is_file():
            return False
        pooling = json.loads(path.read_text(encoding="utf-8"))
        # Newer versions of sentence-transformers write the first key, older ones the second.
        mode, tokens = pooling.get("pooling_mode"), pooling.get("pooling_mode_mean_tokens")
    return mode == "mean" or tokens is True
