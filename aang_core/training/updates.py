"""Directions in the space of parameters: the changes of trials, and the gradients of tasks."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from aang_core.errors import WeighterError
from aang_core.gradients.engine import GradientEngine
from aang_core.gradients.passes import trained
from aang_core.gradients.segments import Segment
from aang_core.tasks.task import to_device
from aang_core.tasks.workbench import Update
from aang_core.training.model_state import Place
from aang_core.training.numbers import problem_of
from aang_core.training.optimization import Optimization


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
        measured: what the host already knows about gradients that were computed together; None for
            a trial's.
        place: number of this update among them.
    """

    tasks: tuple[str, ...]
    deltas: Mapping[nn.Parameter, Tensor]
    buffers: Mapping[Place, Tensor] = field(default_factory=dict)
    measured: Measured | None = None
    place: int = 0


def own_updates(updates: Sequence[Update], *numbers: Sequence[float]) -> list[ParameterUpdate]:
    """The same updates, checked to be ones that the bench returned.

    Args:
        updates: the updates.
        *numbers: lists with one finite number for each update.

    Raises:
        WeighterError: an update is not the bench's, or the numbers are not such lists.
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


def gradients_of_each(
    body: nn.Module,
    engine: GradientEngine,
    segments: Sequence[Segment],
    names: Sequence[str],
    training: Optimization,
) -> tuple[dict[str, float], str | None, list[ParameterUpdate]]:
    """The gradients of some tasks of a step, each by itself; ``.grad`` stays empty.

    Every task takes one step of the engine in which only its own loss counts. Tasks that share
    rows have the same rows, and each its own pass over them.

    Args:
        body: the module that all tasks share.
        engine: computes the gradients.
        segments: the rows of the step.
        names: the tasks to differentiate.
        training: the optimiser of their parameters.

    Returns:
        The losses of the tasks, by name; what is wrong with their numbers, if anything is; and for
        each name the gradient of the body and of the task's head.
    """
    alone = {name: segment for name, segment in _alone(segments) if name in names}
    found: dict[str, ParameterUpdate] = {}
    numbers: list[Tensor] = []
    for name, segment in alone.items():
        engine.step(segment, [], None)
        norm = training.norm()
        numbers.append(torch.stack([x.to(norm) for x in (*engine.losses, norm)]))
        (task,) = (member.task for member in segment.members if member.coefficient)
        own = trained(body, task.head)
        gradients = {p: p.grad for p in own if p.grad is not None}
        training.drop()
        found[name] = ParameterUpdate((name,), gradients)
    updates = [found[name] for name in names]
    matrix = products(updates, training.of_body)
    asked = engine.processes.of_first(torch.cat([*numbers, matrix.flatten()]))
    # The only transfer from the device: the weighter will ask for the products next.
    read = iter(asked.tolist())
    problem = None
    losses: dict[str, float] = {}
    norms: dict[str, float] = {}
    for name, segment in alone.items():
        of_members = {member.task.name: next(read) for member in segment.members}
        norms[name] = next(read)
        losses[name] = of_members[name]
        problem = problem or problem_of({name: losses[name]}, norms[name])
    measured = Measured(
        [norms[name] for name in names], [[next(read) for _ in names] for _ in names]
    )
    known = [replace(update, measured=measured, place=i) for i, update in enumerate(updates)]
    return losses, problem, known


def _alone(segments: Sequence[Segment]) -> Iterator[tuple[str, Segment]]:
    """For every task, by name, a segment in which only its loss counts, on the same rows.

    A task that rides on another's rows still needs that task's segment, with a coefficient of zero.
    """
    for segment in segments:
        for rider in segment.riders:
            alone = replace(rider, coefficient=1.0)
            yield rider.task.name, replace(segment, coefficient=0.0, riders=[alone])
        yield segment.task.name, replace(segment, coefficient=1.0, riders=())


def leave_sum(
    training: Optimization,
    updates: Sequence[ParameterUpdate],
    coefficients: Sequence[float],
    of_heads: Sequence[float],
) -> bool:
    """Leave Σ c_i u_i, clipped, in ``.grad``.

    Args:
        training: the optimiser that will use it.
        updates: the u_i.
        coefficients: c_i of the body's parameters.
        of_heads: c_i of the heads' parameters.

    Returns:
        Whether the sum is finite.
    """
    of_body = set(training.of_body)
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        factors = coefficients if parameter in of_body else of_heads
        used = (c for u, c in zip(updates, factors, strict=True) if parameter in u.deltas)
        # With a gradient of zeros, momentum and weight decay would still move it.
        parameter.grad = None
        if any(used):
            parameter.grad = moved(torch.zeros_like(parameter), parameter, updates, factors)
    norm = training.clip()
    # If the norms that the host knows already decide it, it need not wait for this one.
    return surely_finite(updates, coefficients, of_heads) or bool(norm.isfinite())


def by_task(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> dict[str, float]:
    """The sum of the coefficients of each task's updates."""
    total: dict[str, float] = {}
    for update, coefficient in zip(updates, coefficients, strict=True):
        for task in update.tasks:
            total[task] = total.get(task, 0.0) + coefficient
    return total
