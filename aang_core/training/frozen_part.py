"""The part of a body that is not trained, which checkpoints leave to the encoder."""

import hashlib
from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor, nn

from aang_core.errors import DataError


class FrozenPart:
    """The parameters of a body that are not trained.

    They are where the body came from, so that a checkpoint needs none of them, only the digest that
    tells whether they are still the same.

    Args:
        body: the module that all tasks share, with everything frozen that will be.
    """

    def __init__(self, body: nn.Module) -> None:
        frozen = {name: p for name, p in body.named_parameters() if not p.requires_grad}
        self._parameters = dict(sorted(frozen.items()))
        self._ids = {id(parameter) for parameter in frozen.values()}

    def holds(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` is one of them."""
        return id(tensor) in self._ids

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of their names and values; None if there are none."""
        if not self._parameters:
            return None
        digest = hashlib.sha256()
        for name, parameter in self._parameters.items():
            digest.update(f"{name} {parameter.dtype} {list(parameter.shape)}\n".encode())
            flat = parameter.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def check(self, digest: str | None, saved: Mapping[Tensor, Tensor]) -> None:
        """Refuse the checkpoint of a training whose frozen parameters had other values.

        Args:
            digest: what `digest` was when it was saved; None in checkpoints of earlier versions.
            saved: the values of those of them that it holds, as earlier versions saved them.

        Raises:
            DataError: they had other values.
        """
        if digest in (None, self.digest) and all(
            torch.equal(tensor.detach().cpu(), value) for tensor, value in saved.items()
        ):
            return
        raise DataError(
            "the encoder has changed since the training began: those of its weights that are not "
            "trained are different now. The checkpoint leaves them to the encoder and is worth "
            "nothing without them. Put the encoder back as it was, or start a new training"
        )
