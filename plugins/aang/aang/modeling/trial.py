"""An encoder and its heads, tried on one short row before they are trained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from aang.modeling.body import EncoderBody
from aang.modeling.heads import TransformersHead
from aang_core.errors import ModelError

_TOKENS = 8
_USE = "Use another encoder, such as roberta-base or answerdotai/ModernBERT-base"


def refuse_unusable(
    source: str, body: EncoderBody, heads: Sequence[TransformersHead], longest: int
) -> None:
    """Refuse an encoder that ignores masks, or whose heads read more than hidden states.

    The row passes through the encoder twice, the second time with another token in the middle,
    which a mask hides from all other tokens. Convolutions and Fourier transforms ignore masks.

    Args:
        source: folder or hub name of the encoder.
        body: the encoder. On the meta device, nothing is tried.
        heads: the heads of its models.
        longest: the number of tokens that it takes.

    Raises:
        ModelError: the encoder takes no mask with an entry for each pair of tokens, a token changes
            others in spite of the mask, or a head cannot be computed.
    """
    if body.base.device.type == "meta":
        return
    name = type(body.base).__name__
    with _undisturbed([body.base, *heads]):
        with _refused(
            f"--model {source}: {name} does not take an attention mask with an entry for each pair "
            "of tokens",
            "Objectives need such masks, and so does the end task on an accelerator, even alone",
        ):
            before, after = _hidden_states(body, min(_TOKENS, longest))
        others = torch.arange(before.shape[1], device=before.device) != before.shape[1] // 2
        rounding = 10 * torch.finfo(before.dtype).eps * before.abs().max()
        if ((before - after)[:, others].abs() > rounding).any():
            raise ModelError(
                f"--model {source}: in {name} a token changes others even if the attention mask "
                "hides it from them. Objectives would see what they should predict, and padding "
                "would change how the end task's texts are read, even if that is trained alone. "
                f"{_USE}"
            )
        for head in heads:
            with _refused(
                f"--model {source}: the head of {type(head.model).__name__} cannot be computed "
                "from the encoder's hidden states",
                "AANG gives heads nothing else",
            ):
                head(before)


@contextmanager
def _refused(what: str, why: str) -> Iterator[None]:
    """Raise a ModelError for any error, because every architecture fails in its own way."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ModelError(f"{what} ({error!r:.100}). {why}. {_USE}") from error


@contextmanager
def _undisturbed(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Evaluate modules without gradients, and restore their mode and torch's generator."""
    training = [module.training for module in modules]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.train(mode)


def _hidden_states(body: EncoderBody, tokens: int) -> tuple[Tensor, Tensor]:
    """Hidden states ``[1, T, H]`` before and after the token in the middle changes."""
    middle = tokens // 2
    vocabulary, device = body.base.config.vocab_size, body.base.device
    # Special tokens are at the beginning or at the end of a vocabulary.
    row = torch.full((1, tokens), vocabulary // 2, device=device)
    changed = row.clone()
    changed[:, middle] = vocabulary // 3
    sees = torch.ones(1, tokens, tokens, dtype=torch.bool, device=device)
    sees[:, :, middle] = False
    sees[:, middle, middle] = True
    return body(row, sees), body(changed, sees)
