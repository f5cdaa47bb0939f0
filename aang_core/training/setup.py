"""The one place that puts engine, dev head, optimiser, workbench and trainer together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from aang_core.gradients import (
    DevHeadSettings,
    EngineSettings,
    as_option,
    check_engine,
    choose_dev_head,
    choose_engine,
)
from aang_core.gradients.choose_engine import Called
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import Weighter, require_several_draws, require_whole_round
from aang_core.training.bench import TrainingBench
from aang_core.training.clock import Clock
from aang_core.training.devices import check_trains
from aang_core.training.numbers import OnNan
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.rows import RowStream
from aang_core.training.step_rows import RowBudget
from aang_core.training.trainer import Boundary, Observer, Schedule, Trainer


@dataclass(frozen=True)
class TrainingSettings:
    """The options of a training, whoever starts it.

    Attributes:
        optimizer: optimiser, learning rates and clipping.
        schedule: steps and evaluations.
        rows: rows of a step.
        seed: of every draw of the training loop.
        engine: how gradients are computed.
        dev_head: how the dev head is fitted.
        meta_every: signals are measured every ``meta_every`` steps.
        draws_per_step: how many draws of tasks and rows a step consists of.
        weights_every: weights learn from the mean of ``weights_every`` measured steps.
        on_nan: what to do about a step whose loss or gradient is not finite.
    """

    optimizer: OptimizerSettings
    schedule: Schedule
    rows: RowBudget
    seed: int
    engine: EngineSettings = field(default_factory=EngineSettings)
    dev_head: DevHeadSettings = field(default_factory=DevHeadSettings)
    meta_every: int = 1
    draws_per_step: int = 1
    weights_every: int = 1
    on_nan: OnNan = "stop"


def make_trainer(
    body: nn.Module,
    end_task: Task,
    dev: Task,
    auxiliaries: Sequence[Task],
    weighter: Weighter,
    settings: TrainingSettings,
    *,
    evaluate: Callable[[], Mapping[str, float]],
    score: Callable[[int | None], float] | None = None,
    head_reads: Callable[[Tensor], Tensor] = lambda features: features,
    keep_best: bool = True,
    streams: Mapping[str, RowStream] | None = None,
    observers: Sequence[Observer] = (),
    boundary: Boundary | None = None,
    clock: Clock | None = None,
    processes: Processes = ALONE,
    called: Called = as_option,
) -> Trainer:
    """Build a trainer.

    Args:
        body: the module that all tasks share, on its device, to which all heads are moved.
        end_task: the end task.
        dev: the end task over the rows that the dev gradient is computed on.
        auxiliaries: the auxiliary tasks.
        weighter: a weighter for these tasks, already checked.
        settings: the options.
        evaluate: returns the dev scores of the current model.
        score: the dev metric over a number of dev rows, for weighters that ask for it.
        head_reads: the part of features ``[B, ...]`` that the end task's head reads and that the
            dev head remembers.
        keep_best: whether to restore the best state of body and end-task head at the end.
        streams: endless sources of rows for auxiliary tasks, by name.
        observers: notified after rounds and evaluations.
        boundary: called between two rounds.
        clock: ends training if it has a limit; the learning rates then follow it.
        processes: the processes that share the training.
        called: how the user spells an option, for messages.

    Returns:
        The trainer, ready to train.

    Raises:
        ConfigError: the options contradict each other, or do not suit the weighter's rounds; or
            nothing can train on the body's device.
    """
    device = next(body.parameters()).device
    check_trains(device)
    for task in (end_task, *auxiliaries):
        task.head.to(device)
    check_engine(settings.engine, settings.dev_head, processes, called)
    draws = settings.draws_per_step
    require_several_draws(weighter, draws, called("draws_per_step", draws))
    require_whole_round(weighter, settings.schedule.steps)
    generator = torch.Generator().manual_seed(settings.seed)
    dev_head = choose_dev_head(
        *(settings.dev_head, body, generator), precision=settings.engine.precision, keep=head_reads
    )
    engine = choose_engine(
        *(settings.engine, body, dev_head),
        dev_head_settings=settings.dev_head,
        at_once=settings.rows.at_once,
        processes=processes,
    )
    timed = clock is not None and clock.limit is not None
    bench = TrainingBench(
        body,
        end_task,
        dev,
        auxiliaries,
        engine=engine,
        optimization=Optimization(
            body,
            [end_task.head, *(task.head for task in auxiliaries)],
            settings.optimizer,
            settings.schedule.steps,
            (lambda: clock.share) if clock is not None and timed else None,
        ),
        budget=settings.rows,
        generator=generator,
        meta_every=settings.meta_every,
        score=score,
        streams=streams,
        on_nan=settings.on_nan,
        draws_per_step=draws,
        weights_every=settings.weights_every,
        normalised=getattr(weighter, "normalised", True),
    )
    return Trainer(
        bench,
        weighter,
        schedule=settings.schedule,
        selected={"body": body, "head": end_task.head} if keep_best else {},
        evaluate=evaluate,
        seed=settings.seed,
        observers=tuple(observers),
        boundary=boundary,
        clock=clock,
    )
