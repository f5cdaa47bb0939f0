"""The option ``--mean-layer``, and the layer that it adds to an encoder."""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aang_core import ConfigError, ModelError, RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang import TextModel, TrainedPart

# Each of these linear layers begins as a multiple of the identity. Queries of zero attend to all
# tokens alike; keys stay those of the last layer, since queries would learn nothing from keys of
# zero. With 8 the mean outweighs the token itself, which the layer adds to it.
_BERT = {
    "attention.self.query": 0,
    "attention.self.value": 1,
    "attention.output.dense": 8,
    "output.dense": 0,
}
_DISTILBERT = {
    "attention.q_lin": 0,
    "attention.v_lin": 1,
    "attention.out_lin": 8,
    "ffn.lin2": 0,
}
_LAYERS = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra"), _BERT),
    "distilbert": _DISTILBERT,
}


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register the option."""
    register(
        "mean_layer",
        "add a layer whose first token begins as the mean of all tokens, for sentence encoders",
        bool,
        default=False,
    )


@hookimpl
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Refuse adapters, whose folder is for the encoder as it was, without the layer."""
    if options["mean_layer"] and options.get("lora") is not None:
        raise ConfigError(
            "--mean-layer: does not go with --lora, whose adapters fit the encoder without that "
            "layer; leave one of them out, or use --freeze-layers"
        )


@hookimpl
def aang_prepare_model(
    model: "TextModel", options: Mapping[str, Any], stage: str | None
) -> "TrainedPart | None":
    """Add the layer, for the main training alone: it mixes the tokens that stages predict.

    The layer is a copy of the last one, so that nothing is drawn. Its first token is the norm of
    8 · mean + first token.

    Raises:
        ModelError: the encoder has other layers.
    """
    if not options["mean_layer"] or stage is not None:
        return None
    from aang import TrainedPart
    from aang.modeling import layers_of
    from torch import nn

    base = model.body.base
    layers = layers_of(model.body)
    beginnings = _LAYERS.get(base.config.model_type)
    if layers is None or beginnings is None:
        pooled = hasattr(base.config, "classifier_pooling")
        raise ModelError(
            f"--mean-layer: {type(base).__name__} "
            + ("has classifier_pooling instead" if pooled else "has layers of another form")
            + "; leave the option out, or use a BERT, RoBERTa, ELECTRA or DistilBERT"
        )
    layer = copy.deepcopy(layers[-1])
    for name, module in layer.named_modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear) and name in beginnings:
            nn.init.eye_(module.weight)
            module.weight.data.mul_(beginnings[name])
            nn.init.zeros_(module.bias)
    layers.append(layer)
    base.config.num_hidden_layers += 1
    return TrainedPart("a layer is added whose first token begins as the mean of all tokens")
