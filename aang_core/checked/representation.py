"""Checks of representations: their attention masks are checked at every call."""

import torch
from torch import Tensor

from aang_core.checked.contract import INNOCENT, broken, expect
from aang_core.objectives.stages import Representation
from aang_core.plugins.primitive import Primitive


class CheckedRepresentation:
    """A representation that must return a mask over pairs of tokens."""

    def __init__(self, representation: Representation, primitive: Primitive) -> None:
        self._representation = representation
        self._primitive = primitive
        self._tried = False

    def __call__(self, real: Tensor, generator: torch.Generator) -> Tensor:
        """See :class:`aang_core.objectives.stages.Representation`."""
        before = None if self._tried else real.clone()
        with self._primitive.blamed("its call", INNOCENT):
            sees = self._representation(real, generator)
        rows, tokens = real.shape
        expect(
            self._primitive,
            "who sees whom",
            sees,
            (rows, tokens, tokens),
            real.device,
            "B, T, T",
            torch.bool,
        )
        if before is not None:
            self._check_values(sees, real, before)
            self._tried = True
        return sees

    def _check_values(self, sees: Tensor, real: Tensor, before: Tensor) -> None:
        if not torch.equal(real, before):
            raise broken(self._primitive, "its input real", "left as it was", "changed in place")
        if bool((sees & ~real.unsqueeze(1)).any()):
            raise broken(self._primitive, "padding", "seen by nobody", "seen by a token")
        if bool((real & ~sees.any(dim=2)).any()):
            raise broken(self._primitive, "a real token", "one that sees a token", "it sees none")
