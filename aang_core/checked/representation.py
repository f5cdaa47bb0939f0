"""Checks of representations: their attention masks are checked at every call."""

from collections.abc import Mapping

import torch
from torch import Tensor

from aang_core.checked.contract import INNOCENT, broken, expect
from aang_core.objectives.stages import Representation, ShownRows, TextRepresentation
from aang_core.plugins.primitive import Primitive


class CheckedRepresentation:
    """A representation that must return a mask over pairs of tokens."""

    def __init__(
        self, representation: Representation | TextRepresentation, primitive: Primitive
    ) -> None:
        self._representation = representation
        self._primitive = primitive
        self._tried = False

    def __call__(self, shown: ShownRows, generator: torch.Generator) -> Tensor:
        """Who sees whom in ``shown``, ``[B, T, T]`` bool, whichever kind of representation it is.

        See :class:`aang_core.objectives.stages.Representation` and
        :class:`aang_core.objectives.stages.TextRepresentation`.
        """
        real = shown.real
        inputs = {"real": real}
        with self._primitive.blamed("its call", INNOCENT):
            if isinstance(self._representation, TextRepresentation):
                inputs |= {"ids": shown.ids, "ordinary": shown.ordinary}
                before = self._copied(inputs)
                sees = self._representation.of_text(shown, generator)
            else:
                before = self._copied(inputs)
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
        if not self._tried:
            for name, then in before.items():
                if not torch.equal(inputs[name], then):
                    raise broken(
                        self._primitive, f"its input {name}", "left as it was", "changed in place"
                    )
            self._check_values(sees, before["real"])
            self._tried = True
        return sees

    def _copied(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Copies of the inputs, to find out whether they change; none after the first call."""
        return {} if self._tried else {name: value.clone() for name, value in inputs.items()}

    def _check_values(self, sees: Tensor, real: Tensor) -> None:
        if bool((sees & ~real.unsqueeze(1)).any()):
            raise broken(self._primitive, "padding", "seen by nobody", "seen by a token")
        if bool((real & ~sees.any(dim=2)).any()):
            raise broken(self._primitive, "a real token", "one that sees a token", "it sees none")
