"""Gradients of single tasks, for weighters that combine them, and the step along their sum."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from aang_core.gradients import GradientEngine, Segment
from aang_core.gradients.sink import trained
from aang_core.training.numbers import Problem, problem_of
from aang_core.training.optimization import Optimization
from aang_core.training.step_rows import StepRows
from aang_core.training.updates import (
    Measured,
    ParameterUpdate,
    combined,
    products,
    surely_finite,
)


@dataclass(frozen=True)
class TaskGradients:
    """The gradients of single tasks.

    Attributes:
        updates: one for each task, with the gradient of the body and of the task's head.
        problem: what is wrong with their numbers; None if they are finite.
        losses: of the tasks, by name.
    """

    updates: Sequence[ParameterUpdate]
    problem: Problem | None
    losses: Mapping[str, float]


def gradients_of_each(
    body: nn.Module,
    engine: GradientEngine,
    rows: StepRows,
    names: Sequence[str],
    training: Optimization,
) -> TaskGradients:
    """The gradients of some tasks of a step, each by itself; ``.grad`` stays empty.

    Every task takes one step of the engine in which only its own loss counts. Tasks that share
    rows have the same rows, and each its own pass over them.

    Args:
        body: the module that all tasks share.
        engine: computes the gradients.
        rows: the rows of the step.
        names: the tasks to differentiate.
        training: the optimiser of their parameters.
    """
    alone = {
        name: segment
        for name, segment in segments_alone([*rows.auxiliaries, rows.end])
        if name in names
    }
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
    of_tasks: dict[str, float] = {}
    norms: dict[str, float] = {}
    for name, segment in alone.items():
        *losses, norm_read = (next(read) for _ in range(len(segment.members) + 1))
        problem = problem or problem_of([segment], losses, norm_read, None)
        members = [member.task.name for member in segment.members]
        of_tasks[name] = losses[members.index(name)]
        norms[name] = norm_read
    measured = Measured(
        [norms[name] for name in names], [[next(read) for _ in names] for _ in names]
    )
    known = [replace(update, measured=measured, place=i) for i, update in enumerate(updates)]
    return TaskGradients(known, problem, of_tasks)


def segments_alone(segments: Sequence[Segment]) -> Iterator[tuple[str, Segment]]:
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
    total = combined(updates, coefficients, of_heads, training.of_body)
    for parameter, gradient in total.items():
        parameter.grad = gradient
    norm = training.clip()
    # Where the norms that the host knows decide it, it need not wait for this one.
    return surely_finite(updates, coefficients, of_heads) or bool(norm.isfinite())


def by_task(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> dict[str, float]:
    """The sum of the coefficients of each task's updates."""
    total: dict[str, float] = {}
    for update, coefficient in zip(updates, coefficients, strict=True):
        for task in update.tasks:
            total[task] = total.get(task, 0.0) + coefficient
    return total
