"""Which part of an encoder is trained, in a sentence for the user."""

from aang.modeling.adapters import Adapters
from aang.modeling.encoder import TextModel


def trained_part(model: TextModel, frozen_layers: int | None) -> str | None:
    """A sentence about what of the encoder is trained; None if all of it is.

    Args:
        model: the encoder.
        frozen_layers: how many of its first layers are frozen, besides its embeddings; None if
            nothing is frozen.
    """
    if model.adapters is None and frozen_layers is None:
        return None
    said = []
    if frozen_layers is not None:
        layers = model.body.base.config.num_hidden_layers
        first = f" and the first {frozen_layers} of {layers} layers" if frozen_layers else ""
        said.append(f"the embeddings{first} are not trained")
    if model.adapters is not None:
        said.append(_adapters(model.adapters))
    parameters = list(model.body.parameters())
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    total = sum(p.numel() for p in parameters)
    return f"{'; '.join(said)}: {trained:,} of {total:,} parameters of the encoder are trained"


def _adapters(adapters: Adapters) -> str:
    layers = adapters.layers
    ends = sorted({name.rpartition(".")[2] for name in layers})
    return f"adapters of rank {adapters.rank} on {len(layers)} linear layers ({', '.join(ends)})"
