"""Training of any modules and tasks under any weighter, without text and without a run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from aang_core.checked.weighter import CheckedWeighter
from aang_core.gradients import (
    DevHeadFit,
    DevHeadRows,
    DevHeadSettings,
    EngineSettings,
    as_argument,
)
from aang_core.objectives.defaults import DEFAULT_WEIGHTER
from aang_core.plugins import load_plugins
from aang_core.tasks.processes import processes_of_environment
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import TaskCard, Weighter
from aang_core.training.evaluation import Metric
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.step_rows import RowBudget
from aang_core.training.trainer import Observer, Schedule


@dataclass(frozen=True)
class FitResult:
    """What a training came to.

    best_step, best_score: of the dev metric; body and head are left in that state.
    steps: optimiser steps in all. weights: of every task at the end.
    history: a mapping for each round, as a line of ``weights.jsonl`` is.
    """

    best_step: int
    best_score: float
    steps: int
    weights: Mapping[str, float]
    history: Sequence[Mapping[str, Any]]


@dataclass
class _History:
    records: list[Mapping[str, Any]] = field(default_factory=list)

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self.records.append(record)

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        """Scores are the trainer's own."""


def fit(
    body: nn.Module,
    end_task: Task,
    auxiliaries: Sequence[Task],
    *,
    dev: Task,
    evaluate: Callable[[], Mapping[str, float]],
    weighter: str | Weighter = DEFAULT_WEIGHTER,
    options: Mapping[str, Any] | None = None,
    steps: int = 400,
    eval_every: int = 25,
    patience: int = 8,
    metric: Metric = "accuracy",
    batch_size: int = 32,
    dev_batch_size: int = 32,
    aux_batch_size: int = 32,
    optimizer: OptimizerSettings | None = None,
    dev_head: DevHeadRows = "remembered",
    dev_head_rows: int = 256,
    dev_head_fit: DevHeadFit = "adamw",
    dev_average: float = 0.0,
    task_clip: float | None = None,
    gradients: Literal["stream", "packed"] = "stream",
    meta_every: int = 1,
    draws_per_step: int = 1,
    weights_every: int = 1,
    on_nan: Literal["stop", "skip"] = "stop",
    seed: int = 0,
    observers: Sequence[Observer] = (),
) -> FitResult:
    """Train ``body`` on ``end_task`` beside ``auxiliaries``, in place, and keep the best state.

    Every task has a head of its own, ``task.head``; the body is what they share. Started by
    ``torchrun`` or ``accelerate launch``, all processes train one model, the same in each of them.

    dev: the end task over its dev rows, with the same head; dev gradient and dev loss are over it.
    evaluate: dev scores of the model as it stands; ``metric`` chooses the best and stops early. A
        weighter that would make do with a part of the dev rows has all of them scored.
    weighter: its name, or one made already; ``options`` are those of a named one.
    aux_batch_size: rows a step of all auxiliary tasks together.
    draws_per_step: draws of tasks and rows that a step is made of; they share its rows.
    weights_every: weights learn from the signals of so many measured steps together.
    dev_head: what the head of the dev gradient is fitted to: end-task rows of the steps before, the
        default; rows drawn for it; the step's own rows; or the end task's own head instead. The
        first two steps measure nothing by default, as hardly a row is remembered.
    dev_head_rows: how many remembered or drawn rows that are.
    dev_head_fit: a few iterations of AdamW, or penalised logistic regression.
    dev_average: decay of the running mean of the dev gradient over steps; 0 for none.
    task_clip: norm that each task's gradient over the body is clipped to before it is weighted.
    on_nan: what to do about a step whose loss or gradient is NaN or infinite.
    seed: of torch's generator, which dropout draws from, and of the generator of all other draws.

    Raises:
        AangError: no weighter of that name, an option that it lacks, or weights that break the
            contract of weighters.
        ConfigError: gradients="packed" with task_clip, with dev_average or in several processes.
        NumericalError: a loss or gradient is not finite, ten times in a row if they are skipped.
        OutOfMemoryError: the memory does not do for one row at a time.
    """
    processes = processes_of_environment(next(body.parameters()).device)
    settings = TrainingSettings(
        optimizer=optimizer or OptimizerSettings(lr=1e-3, head_lr=1e-3),
        schedule=Schedule(steps, eval_every, patience, metric),
        rows=RowBudget(batch_size, dev_batch_size, aux_batch_size),
        seed=seed,
        engine=EngineSettings(gradients, task_clip=task_clip),
        dev_head=DevHeadSettings(dev_head, dev_head_rows, dev_head_fit, average=dev_average),
        meta_every=meta_every,
        draws_per_step=draws_per_step,
        weights_every=weights_every,
        on_nan=on_nan,
    )
    torch.manual_seed(seed)
    made = _weighter(weighter, options or {}, end_task, auxiliaries)
    history = _History()
    trainer = make_trainer(
        *(body, end_task, dev, auxiliaries, made, settings),
        evaluate=evaluate,
        score=lambda rows: evaluate()[metric],
        observers=(history, *observers),
        processes=processes,
        called=as_argument,
    )
    progress = trainer.train()
    return FitResult(
        best_step=progress.best_step,
        best_score=progress.best_score,
        steps=trainer.bench.steps,
        weights=made.weights(),
        history=history.records,
    )


def _weighter(
    weighter: str | Weighter,
    options: Mapping[str, Any],
    end_task: Task,
    auxiliaries: Sequence[Task],
) -> CheckedWeighter:
    """The weighter of that name made for the tasks, or the given one; checked either way."""
    if not isinstance(weighter, str):
        return CheckedWeighter.given(weighter, [task.name for task in (end_task, *auxiliaries)])
    return CheckedWeighter.make(
        load_plugins().registry.weighter(weighter),
        TaskCard(end_task.name),
        [TaskCard(task.name, task.factors) for task in auxiliaries],
        options,
    )
