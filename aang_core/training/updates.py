"""Updates of trials: what training changed (αVIL, section 3, Algorithm 1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from aang_core.errors import WeighterError
from aang_core.tasks.weighting import Update


@dataclass(frozen=True)
class ParameterUpdate:
    """The update δ of a trial.

    Attributes:
        tasks: the tasks that the trial trained.
        deltas: the change of each parameter; unchanged parameters are left out.
    """

    tasks: tuple[str, ...]
    deltas: Mapping[nn.Parameter, Tensor]


class Snapshot:
    """A copy of parameters' values, to restore or to compare with."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._values = {p: p.detach().clone() for p in parameters}

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the value of every parameter."""
        for parameter, value in self._values.items():
            parameter.copy_(value)

    def difference(self, tasks: tuple[str, ...], *, offload: bool) -> ParameterUpdate:
        """What has changed since the copy was made.

        Args:
            tasks: the tasks that were trained.
            offload: whether to keep the changes on the CPU.
        """
        deltas = {}
        for parameter, value in self._values.items():
            delta = parameter.detach() - value
            if bool(delta.any()):
                deltas[parameter] = delta.cpu() if offload else delta
        return ParameterUpdate(tasks, deltas)


def own_updates(updates: Sequence[Update]) -> list[ParameterUpdate]:
    """The same updates, checked to be ones that a trial returned.

    Raises:
        WeighterError: one of them is something else.
    """
    own = [update for update in updates if isinstance(update, ParameterUpdate)]
    if len(own) < len(updates):
        strange = next(u for u in updates if not isinstance(u, ParameterUpdate))
        raise WeighterError(f"{strange!r} is not an update that this bench returned")
    return own


@torch.no_grad()
def apply_updates(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> None:
    """θ ← θ + Σ α_t δ_t, summed in the order given."""
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        parameter.copy_(moved(parameter.detach(), parameter, updates, coefficients))


def moved(
    value: Tensor,
    parameter: nn.Parameter,
    updates: Sequence[ParameterUpdate],
    coefficients: Iterable[float],
) -> Tensor:
    """The ``value`` of a parameter plus Σ α_t δ_t."""
    for update, coefficient in zip(updates, coefficients, strict=True):
        if parameter in update.deltas:
            value = value + coefficient * update.deltas[parameter].to(value.device)
    return value
