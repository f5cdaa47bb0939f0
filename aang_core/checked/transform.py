"""Checks of transforms: the corrupted token ids are checked at every call."""

from typing import Any

import torch
from torch import Tensor

from aang_core.checked.contract import INNOCENT, broken, described, expect
from aang_core.objectives.stages import Corruption, Transform, Vocabulary
from aang_core.plugins.primitive import Primitive


class CheckedTransform:
    """A transform that must return token ids and a selection of the same shape as its input.

    If it says where the tokens came from, rows may have another number of tokens than its input.
    """

    def __init__(self, transform: Transform, primitive: Primitive) -> None:
        self._transform = transform
        self._primitive = primitive
        self._tried = False

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """See :class:`aang_core.objectives.stages.Transform`."""
        before = None if self._tried else (ids.clone(), ordinary.clone())
        with self._primitive.blamed("its call", INNOCENT):
            returned: Any = self._transform(ids, ordinary, vocabulary, generator)
        corruption = self._corruption(returned)
        self._check_shapes(corruption, ids)
        if before is not None:
            self._check_inputs((ids, ordinary), before)
            self._check_values(corruption, vocabulary, *before)
            self._tried = True
        return corruption

    def _corruption(self, returned: Any) -> Corruption:
        if not isinstance(returned, tuple | list) or not 2 <= len(returned) <= 4:
            raise broken(
                self._primitive,
                "what it returned",
                "a Corruption of ids and selected",
                described(returned),
            )
        return Corruption(*returned)

    def _check_shapes(self, corruption: Corruption, ids: Tensor) -> None:
        shape, letters = tuple(ids.shape), "B, T"
        origin: Any = corruption.origin
        if isinstance(origin, Tensor) and origin.dim() == 2 and origin.shape[1]:
            shape, letters = (len(ids), origin.shape[1]), "B, T'"
        expected: dict[str, torch.dtype] = {"ids": torch.int64, "selected": torch.bool}
        expected |= {} if corruption.real is None else {"real": torch.bool}
        expected |= {} if origin is None else {"origin": torch.int64}
        for name, dtype in expected.items():
            value = getattr(corruption, name)
            expect(self._primitive, name, value, shape, ids.device, letters, dtype)

    def _check_inputs(self, inputs: tuple[Tensor, Tensor], before: tuple[Tensor, Tensor]) -> None:
        for name, now, then in zip(("ids", "ordinary"), inputs, before, strict=True):
            if not torch.equal(now, then):
                raise broken(
                    self._primitive, f"its input {name}", "left as it was", "changed in place"
                )

    def _check_values(
        self, corruption: Corruption, vocabulary: Vocabulary, before: Tensor, ordinary: Tensor
    ) -> None:
        ids, selected, real, origin = corruption
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= vocabulary.size:
            raise broken(
                self._primitive,
                "ids",
                f"token ids from 0 to {vocabulary.size - 1}",
                f"{low if low < 0 else high}",
            )
        if origin is not None:
            self._check_origin(origin, before.shape[1])
            ordinary = ordinary.gather(1, origin.clamp(min=0)) & (origin >= 0)
        if bool((selected & ~ordinary).any()):
            inserted = "" if origin is None else ", or an inserted token"
            raise broken(
                self._primitive,
                "selected",
                "ordinary tokens alone",
                f"a special token or padding{inserted}",
            )
        if real is not None and bool((selected & ~real).any()):
            raise broken(
                self._primitive, "selected", "tokens that are left", "one that real says is gone"
            )

    def _check_origin(self, origin: Tensor, tokens: int) -> None:
        low, high = int(origin.min()), int(origin.max())
        if low < -1 or high >= tokens:
            raise broken(
                self._primitive,
                "origin",
                f"places from 0 to {tokens - 1}, or -1 for an inserted token",
                f"{low if low < -1 else high}",
            )
