"""Fine-tuning of the last layers alone: the embeddings and the first layers stay as they are."""

from typing import Any

import torch
from aang import TrainedPart
from aang.modeling import EncoderBody, layers_of
from torch import Tensor, nn

from aang_core import ModelError


def freeze_layers(body: EncoderBody, count: int) -> TrainedPart:
    """Stop training the embeddings and the first ``count`` layers.

    This freezes whatever the first trained layer reads: word embeddings, their norm and projection,
    position biases that all layers share, and the layers before it. So a forward pass through
    these records nothing for a backward pass, and no gradient reaches them.

    Args:
        body: the encoder, with parameters in the precision of its buffers.
        count: the number of layers; with 0, the embeddings alone are frozen.

    Raises:
        ModelError: ``count`` is not below the number of layers, the layers share their parameters,
            or they cannot be told apart.
    """
    layers = layers_of(body)
    if layers is None:
        raise ModelError(
            f"--freeze-layers: {type(body.base).__name__} does not have its layers in one list, "
            "perhaps because they share their parameters (ALBERT); use --lora, or another encoder"
        )
    if count >= len(layers):
        raise ModelError(
            f"--freeze-layers {count}: {type(body.base).__name__} has {len(layers)} layers, and at "
            f"least the last one must be trained; give at most {len(layers) - 1}"
        )
    for parameter in _read_by(body, layers[count]):
        parameter.requires_grad_(False)
    for layer in layers[:count]:
        layer.requires_grad_(False)
    first = f" and the first {count} of {len(layers)} layers" if count else ""
    return TrainedPart(f"the embeddings{first} are not trained")


def _read_by(body: EncoderBody, layer: nn.Module) -> list[nn.Parameter]:
    """The parameters that the inputs of ``layer`` depend on."""
    inputs: list[Tensor] = []

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        inputs.extend(
            value
            for value in (*given, *named.values())
            if isinstance(value, Tensor) and value.requires_grad
        )

    device = next(body.parameters()).device
    ids = torch.ones(1, 2, dtype=torch.int64, device=device)
    was_training = body.base.training
    body.base.eval()  # no dropout, which would draw
    with layer.register_forward_pre_hook(note, with_kwargs=True), torch.enable_grad():
        body(ids, torch.ones_like(ids, dtype=torch.bool))
    body.base.train(was_training)
    parameters = [p for p in body.parameters() if p.requires_grad]
    summed = torch.stack([value.sum() for value in inputs]).sum()
    found = torch.autograd.grad(summed, parameters, allow_unused=True)
    return [p for p, gradient in zip(parameters, found, strict=True) if gradient is not None]
