"""Updates: directions in the space of parameters, from trials (αVIL, section 3) or gradients."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from aang_core.errors import WeighterError
from aang_core.tasks.moving import to_device
from aang_core.tasks.workbench import Update
from aang_core.training.buffers import KeptBuffers, Place, buffers_of, moved_buffers


@dataclass(frozen=True)
class Measured:
    """Numbers of gradients that were computed together, moved to the host with their losses.

    Attributes:
        norms: of each gradient, over body and heads.
        products: ⟨u_i, u_j⟩ over the body, ``[n][n]``.
    """

    norms: Sequence[float]
    products: Sequence[Sequence[float]]


@dataclass(frozen=True)
class ParameterUpdate:
    """The change δ that a trial made, or the gradient of a task.

    Attributes:
        tasks: the tasks that were trained or differentiated.
        deltas: the change or gradient of each parameter; those without any are left out.
        buffers: the change that a trial made to each buffer.
        measured: what the host already knows of gradients that were computed together; None for
            those of a trial.
        place: number of this update among them.
    """

    tasks: tuple[str, ...]
    deltas: Mapping[nn.Parameter, Tensor]
    buffers: Mapping[Place, Tensor] = field(default_factory=dict)
    measured: Measured | None = None
    place: int = 0


class Snapshot:
    """A copy of parameters and buffers, to restore or to compare with.

    Args:
        parameters: the parameters.
        modules: the modules whose buffers are copied.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], modules: Iterable[nn.Module]) -> None:
        self._values = {p: p.detach().clone() for p in parameters}
        self._buffers = KeptBuffers(place for place, _ in buffers_of(modules))

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the value of every parameter and buffer."""
        for parameter, value in self._values.items():
            parameter.copy_(value)
        self._buffers.restore()

    def difference(self, tasks: tuple[str, ...], *, offload: bool) -> ParameterUpdate:
        """What has changed since the copy was made.

        Args:
            tasks: the tasks that were trained.
            offload: whether to keep the changes on the CPU.
        """
        parameters = {p: (p.detach(), value) for p, value in self._values.items()}
        buffers = self._buffers.compared()
        flags = [(a != b).any() for a, b in (*parameters.values(), *buffers.values())]
        # The only transfer from the device, unless the changes are kept on the CPU. They are
        # computed afterwards and one by one, so that those take no room on the device.
        changed = iter(torch.stack([flag.to(flags[0].device) for flag in flags]).tolist())
        return ParameterUpdate(
            tasks,
            {p: _kept(a - b, offload) for p, (a, b) in parameters.items() if next(changed)},
            {place: _kept(a - b, offload) for place, (a, b) in buffers.items() if next(changed)},
        )


def _kept(change: Tensor, offload: bool) -> Tensor:
    return change.cpu() if offload else change


def own_updates(updates: Sequence[Update], *numbers: Sequence[float]) -> list[ParameterUpdate]:
    """The same updates, checked to be ones that the bench returned.

    Args:
        updates: the updates.
        *numbers: lists with one finite number for each update.

    Raises:
        WeighterError: an update is something else, or the numbers are not such lists.
    """
    own = [update for update in updates if isinstance(update, ParameterUpdate)]
    if len(own) < len(updates):
        strange = next(u for u in updates if not isinstance(u, ParameterUpdate))
        raise WeighterError(f"{strange!r} is not an update that this bench returned")
    for given in numbers:
        if len(given) != len(own):
            raise WeighterError(
                f"{len(own)} updates and {len(given)} coefficients; give one for each"
            )
        if not all(math.isfinite(number) for number in given):
            raise WeighterError(f"coefficients of updates: expected finite numbers, got {given}")
    return own


@torch.no_grad()
def apply_updates(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> None:
    """θ ← θ + Σ α_t δ_t, summed in the order given; buffers as in `moved_buffers`."""
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        parameter.copy_(moved(parameter.detach(), parameter, updates, coefficients))
    for (owner, name), value in buffers_after(updates, coefficients).items():
        getattr(owner, name).copy_(value)


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


def buffers_after(
    updates: Sequence[ParameterUpdate], coefficients: Sequence[float]
) -> dict[Place, Tensor]:
    """The buffers at θ + Σ α_t δ_t, those that an update changes."""
    return moved_buffers([update.buffers for update in updates], coefficients)


def products(updates: Sequence[ParameterUpdate], body: Sequence[nn.Parameter]) -> Tensor:
    """⟨δ_i, δ_j⟩ over the body's parameters, float64 ``[n, n]``, on the body's device."""
    n = len(updates)
    like = body[0]
    matrix = torch.zeros(n, n, dtype=torch.float64, device=like.device)
    for parameter in body:
        rows = [i for i, update in enumerate(updates) if parameter in update.deltas]
        if not rows:
            continue
        stack = torch.stack(
            [updates[i].deltas[parameter].to(like.device).reshape(-1) for i in rows]
        )
        at = to_device(torch.tensor(rows), like.device)
        matrix[at.unsqueeze(1), at] += (stack @ stack.T).double()
    return matrix


def known_products(updates: Sequence[ParameterUpdate]) -> list[list[float]] | None:
    """⟨u_i, u_j⟩ over the body, ``[n][n]``, if they were measured with the gradients; else None."""
    measured = updates[0].measured if updates else None
    if measured is None or any(update.measured is not measured for update in updates):
        return None
    return [[measured.products[i.place][j.place] for j in updates] for i in updates]


def surely_finite(updates: Sequence[ParameterUpdate], *lists: Sequence[float]) -> bool:
    """Whether Σ c_t u_t is finite for every list of c_t, by ‖Σ c_t u_t‖ ≤ Σ |c_t| ‖u_t‖.

    The norm's own squares have to be finite, too. False says nothing: the sum has to be computed.
    """
    if any(update.measured is None for update in updates):
        return False
    norms = [update.measured.norms[update.place] for update in updates if update.measured]
    largest = math.sqrt(min(torch.finfo(d.dtype).max for u in updates for d in u.deltas.values()))
    # Half of it, for rounding.
    return all(
        math.fsum(abs(c) * norm for c, norm in zip(coefficients, norms, strict=True)) < largest / 2
        for coefficients in lists
    )


def combined(
    updates: Sequence[ParameterUpdate],
    coefficients: Sequence[float],
    of_heads: Sequence[float],
    body: Iterable[nn.Parameter],
) -> dict[nn.Parameter, Tensor]:
    """Σ c_t δ_t of every parameter that an update has.

    Args:
        updates: the δ_t.
        coefficients: c_t for the body's parameters.
        of_heads: c_t for all other parameters.
        body: the body's parameters.
    """
    shared = set(body)
    total: dict[nn.Parameter, Tensor] = {}
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        factors = coefficients if parameter in shared else of_heads
        total[parameter] = moved(torch.zeros_like(parameter), parameter, updates, factors)
    return total
