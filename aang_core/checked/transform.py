"""Checks of transforms: the corrupted token ids are checked at every call."""

from typing import Any

import torch
from torch import Tensor

from aang_core.checked.contract import INNOCENT, broken, described, expect
from aang_core.objectives.stages import Corruption, Transform, Vocabulary
from aang_core.plugins.primitive import Primitive


class CheckedTransform:
    """A transform that must return token ids and a selection of the same shape as its input."""

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
        corruption = self._pair(returned)
        expect(self._primitive, "ids", corruption.ids, ids.shape, ids.device, "B, T", torch.int64)
        expect(
            self._primitive,
            "selected",
            corruption.selected,
            ids.shape,
            ids.device,
            "B, T",
            torch.bool,
        )
        if before is not None:
            self._check_values(corruption, vocabulary, (ids, ordinary), before)
            self._tried = True
        return corruption

    def _pair(self, returned: Any) -> Corruption:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise broken(
                self._primitive,
                "what it returned",
                "a Corruption of ids and selected",
                described(returned),
            )
        return Corruption(*returned)

    def _check_values(
        self,
        corruption: Corruption,
        vocabulary: Vocabulary,
        inputs: tuple[Tensor, Tensor],
        before: tuple[Tensor, Tensor],
    ) -> None:
        ids, selected = corruption
        for name, now, then in zip(("ids", "ordinary"), inputs, before, strict=True):
            if not torch.equal(now, then):
                raise broken(
                    self._primitive, f"its input {name}", "left as it was", "changed in place"
                )
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= vocabulary.size:
            raise broken(
                self._primitive,
                "ids",
                f"token ids from 0 to {vocabulary.size - 1}",
                f"{low if low < 0 else high}",
            )
        if bool((selected & ~before[1]).any()):
            raise broken(
                self._primitive, "selected", "ordinary tokens alone", "a special token or padding"
            )
