"""Training of any modules and tasks with any weighter, without text and without a run folder."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from pydantic import TypeAdapter, ValidationError
from torch import nn

from aang.config import TrainConfig
from aang_core.checked.weighter import CheckedWeighter
from aang_core.errors import ConfigError
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
from aang_core.training.same_start import copy_from_first, require_same_rows
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.step_rows import RowBudget
from aang_core.training.trainer import Observer, Schedule
from aang_core.turns import training_turn


@dataclass(frozen=True)
class FitResult:
    """The outcome of :func:`fit`.

    Attributes:
        best_step: the step with the best dev score; the body and the end task's head are left as
            they were then.
        best_score: that score, of the metric that was chosen.
        steps: the number of optimiser steps.
        weights: the weight of every task at the end.
        history: one mapping per round, with the keys of a line of ``weights.jsonl``.

    Examples:
        >>> from aang_core import FitResult
        >>> rounds = [{"step": 1, "end_task_weight": 0.4}, {"step": 2, "end_task_weight": 0.5}]
        >>> result = FitResult(2, 0.9, 2, {"sign": 0.5, "order": 0.5}, rounds)
        >>> [line["end_task_weight"] for line in result.history]
        [0.4, 0.5]
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

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Does nothing: the trainer keeps the scores."""


@training_turn()
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

    Every task has its own head, ``task.head``; all tasks share the body. Under ``torchrun`` or
    ``accelerate launch``, all processes train the same model together. They start from the first
    process's modules, and all of them need the same rows.

    Args:
        body: the module that all tasks share, on the device to train on; heads are moved there.
        end_task: the task to be good at.
        auxiliaries: the tasks that may help it. No two tasks may have the same name, and none the
            name ``"body"``.
        dev: the end task over its dev rows, with the same head. The dev gradient and the dev loss
            are computed on it.
        evaluate: returns the dev scores of the model in its current state. Weighters that score a
            part of the dev rows get the score of all of them.
        weighter: the name of a weighter, or a weighter.
        options: the options of a weighter that is given by name.
        steps: the largest number of optimiser steps.
        eval_every: steps between evaluations.
        patience: stop after this many evaluations without a better score.
        metric: the score that chooses the best state and decides when to stop; higher is better, so
            it cannot be ``"rmse"``.
        batch_size: end-task rows per step.
        dev_batch_size: dev rows per step, for the dev gradient.
        aux_batch_size: rows per step of all auxiliary tasks together.
        optimizer: learning rates, weight decay and schedule; 1e-3 for body and heads by default.
        dev_head: the head of the dev gradient. It is fitted to end-task rows of earlier steps
            (``"remembered"``), to rows drawn for it (``"drawn"``) or to the rows of the step
            (``"own-rows"``); ``"end-task"`` uses the end task's own head. With ``"remembered"`` the
            first two steps measure no signals, because too few rows are remembered.
        dev_head_rows: how many remembered or drawn rows the dev head is fitted to.
        dev_head_fit: a few iterations of AdamW, or penalised logistic regression.
        dev_average: decay of the running mean of the dev gradient over steps; 0 uses no mean.
        task_clip: clip the gradient of each task over the body to this norm before weighting it.
        gradients: the engine: ``"stream"`` takes one task at a time, ``"packed"`` all together.
        meta_every: measure gradient signals every ``meta_every`` steps.
        draws_per_step: draws of tasks and rows that one step consists of; they share its rows.
        weights_every: update the weights every ``weights_every`` measured steps, from the mean of
            their signals.
        on_nan: stop at a step whose loss or gradient is NaN or infinite, or skip it.
        seed: the seed of torch's generator, which dropout draws from, and of all other draws.
        observers: told about every round and every evaluation.

    Returns:
        The best step, the weights and the history; ``body`` and the end task's head hold the best
        state, the other heads the last one.

    Raises:
        AangError: there is no weighter of that name, it has no such option, or its weights break
            the contract of weighters.
        ConfigError: ``gradients="packed"`` with ``task_clip``, with ``dev_average`` or in several
            processes, a number out of range, fewer rows of a kind than draws, a metric that is
            better when lower, or two tasks with one name.
        SharedError: the tasks' rows differ between processes.
        NumericalError: a loss or gradient is not finite; with ``on_nan="skip"``, ten times in a
            row.
        OutOfMemoryError: not even one row at a time fits into memory.

    Examples:
        >>> import torch
        >>> from aang_core import TensorTask, fit
        >>> x = torch.randn(64, 4)
        >>> loss = torch.nn.CrossEntropyLoss(reduction="none")
        >>> def task(name, targets):
        ...     return TensorTask(name, torch.nn.Linear(8, 2), {"input": x}, targets.long(), loss)
        >>> body, sign = torch.nn.Linear(4, 8), task("sign", x[:, 0] > 0)
        >>> def evaluate():
        ...     right = sign.head(body(x)).argmax(dim=1) == sign.targets
        ...     return {"accuracy": float(right.float().mean())}
        >>> result = fit(
        ...     body,
        ...     sign,
        ...     [task("order", x[:, 0] > x[:, 1])],
        ...     dev=sign,
        ...     evaluate=evaluate,
        ...     weighter="static",
        ...     steps=20,
        ...     eval_every=10,
        ... )
        >>> result.steps, dict(result.weights)
        (20, {'sign': 0.5, 'order': 0.5})
    """
    rows = {
        "batch_size": batch_size,
        "dev_batch_size": dev_batch_size,
        "aux_batch_size": aux_batch_size,
    }
    _require_possible(
        **rows,
        steps=steps,
        eval_every=eval_every,
        patience=patience,
        dev_head=dev_head,
        dev_head_rows=dev_head_rows,
        dev_head_fit=dev_head_fit,
        dev_average=dev_average,
        task_clip=task_clip,
        gradients=gradients,
        meta_every=meta_every,
        draws_per_step=draws_per_step,
        weights_every=weights_every,
        on_nan=on_nan,
        seed=seed,
    )
    _require_rows(draws_per_step, **rows)
    _require_names([end_task, *auxiliaries])
    if metric == "rmse":
        raise ConfigError(
            f"{as_argument('metric', metric)}: the model with the highest score is kept, and rmse "
            "is better when lower; choose r2, which ranks models alike"
        )
    device = next(body.parameters()).device
    processes = processes_of_environment(device)
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
    tasks = [end_task, dev, *auxiliaries]
    require_same_rows(tasks, processes, device)
    copy_from_first([body, *(task.head for task in tasks)], processes)
    progress = trainer.train()
    return FitResult(
        best_step=progress.best_step,
        best_score=progress.best_score,
        steps=trainer.bench.steps,
        weights=made.weights(),
        history=history.records,
    )


def _require_possible(**arguments: object) -> None:
    """Raise ConfigError unless each argument is a value of the option of ``aang train``."""
    for name, value in arguments.items():
        option = TrainConfig.model_fields[name]
        try:
            allowed: Any = Annotated[option.annotation, option]
            TypeAdapter(allowed).validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise ConfigError(
                f"{as_argument(name, value)}: {message[:1].lower()}{message[1:]}"
            ) from error


def _require_rows(draws: int, **rows: int) -> None:
    """Raise ConfigError unless every draw of a step has a row of each kind."""
    for name, number in rows.items():
        if number < draws:
            raise ConfigError(
                f"{as_argument(name, number)} is less than one row for each of the draws "
                f"({as_argument('draws_per_step', draws)}); give more rows or fewer draws"
            )


def _require_names(tasks: Sequence[Task]) -> None:
    """Raise ConfigError unless every task has a name of its own."""
    for name, count in Counter(task.name for task in tasks).items():
        if name == "body":
            raise ConfigError("a task is named 'body', as the shared module is; rename it")
        if count > 1:
            raise ConfigError(
                f"{count} tasks are named {name!r}; weights and heads are kept by name, so give "
                "each task a name of its own"
            )


def _weighter(
    weighter: str | Weighter,
    options: Mapping[str, Any],
    end_task: Task,
    auxiliaries: Sequence[Task],
) -> CheckedWeighter:
    """Make the weighter of that name for the tasks, or take the given one; either is checked."""
    if not isinstance(weighter, str):
        return CheckedWeighter.given(weighter, [task.name for task in (end_task, *auxiliaries)])
    return CheckedWeighter.make(
        load_plugins().registry.weighter(weighter),
        TaskCard(end_task.name),
        [TaskCard(task.name, task.factors) for task in auxiliaries],
        options,
    )
