"""Training of any modules and tasks with any weighter, without text and without a run folder."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from aang_core.errors import ConfigError
from aang_core.gradients import DevHeadSettings, EngineSettings, Passes
from aang_core.gradients.dev_head import choose_dev_head, find_dev_heads
from aang_core.gradients.engine import (
    Called,
    as_argument,
    as_option,
    check_engine,
    choose_engine,
    find_engine,
)
from aang_core.plugins import load_plugins
from aang_core.plugins.registry import DEFAULT_WEIGHTER, Registry
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.processes import ALONE, Processes, processes_of_environment
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import TaskCard, Weighter, require_several_draws, require_whole_round
from aang_core.training.bench import RunTasks, StepSettings, TrainingBench
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.rows import RowBudget
from aang_core.training.trainer import Observer, Schedule, Trainer, Watching
from aang_core.turns import training_turn


def can_train(device: torch.device) -> bool:
    """Whether a training can run on the device. Models of a run predict on every device.

    Apple's MPS has no float64, in which gradient signals are summed.
    """
    return device.type != "mps"


def check_trains(device: torch.device) -> None:
    """Refuse a device that cannot train.

    Raises:
        ConfigError: it cannot train.
    """
    if not can_train(device):
        raise ConfigError(
            f"the device {device} can predict but not train, because it lacks float64; train on cpu"
        )


@dataclass(frozen=True)
class TrainingSettings:
    """The options of a training, whoever starts it.

    Attributes:
        optimizer: optimiser, learning rates and clipping.
        schedule: steps and evaluations.
        step: what a step consists of.
        seed: of every draw of the training loop.
        engine: how gradients are computed.
        dev_head: how the dev head is fitted.
        called: how the user spells an option, for messages.
    """

    optimizer: OptimizerSettings
    schedule: Schedule
    step: StepSettings
    seed: int
    engine: EngineSettings = field(default_factory=EngineSettings)
    dev_head: DevHeadSettings = field(default_factory=DevHeadSettings)
    called: Called = as_option


def make_trainer(
    body: nn.Module,
    tasks: RunTasks,
    weighter: Weighter,
    settings: TrainingSettings,
    *,
    evaluate: Callable[[], Mapping[str, float]],
    score: Callable[[int | None], float] | None = None,
    watching: Watching | None = None,
    processes: Processes = ALONE,
) -> Trainer:
    """Build a trainer.

    Args:
        body: the module that all tasks share, on its device, to which all heads are moved.
        tasks: the tasks.
        weighter: a weighter for these tasks, already checked.
        settings: the options.
        evaluate: returns the dev scores of the current model.
        score: the dev metric over a number of dev rows, for weighters that ask for it.
        watching: observers, checkpoints and the clock; if the clock has a limit, the learning
            rates follow it.
        processes: the processes that share the training.

    Returns:
        The trainer, ready to train.

    Raises:
        ConfigError: the options contradict each other, or do not suit the weighter's rounds; or the
            body's device cannot train.
    """
    device = next(body.parameters()).device
    check_trains(device)
    for head in tasks.heads:
        head.to(device)
    check_engine(settings.engine, settings.dev_head, processes, settings.called)
    draws = settings.step.draws_per_step
    require_several_draws(weighter, draws, settings.called("draws_per_step", draws))
    require_whole_round(weighter, settings.schedule.steps)
    watching = watching or Watching()
    generator = torch.Generator().manual_seed(settings.seed)
    dev_head = choose_dev_head(
        settings.dev_head,
        Passes(body, settings.engine.precision),
        generator,
        tasks.end_task.head_reads,
    )
    engine = choose_engine(
        *(settings.engine, body, dev_head),
        dev_head_settings=settings.dev_head,
        at_once=settings.step.rows.at_once,
        processes=processes,
    )
    clock = watching.clock
    share = None if clock.limit is None else lambda: clock.share
    steps = settings.schedule.steps
    bench = TrainingBench(
        *(body, tasks, engine),
        Optimization(body, tasks.heads, settings.optimizer, steps, share),
        settings.step,
        generator=generator,
        score=score,
        normalised=weighter.normalised,
    )
    return Trainer(
        *(bench, weighter, settings.schedule),
        evaluate=evaluate,
        seed=settings.seed,
        watching=watching,
    )


class FitOptions(BaseModel):
    """The options of :func:`fit`, with the names and bounds that ``aang train`` has for them.

    Attributes:
        options: the options of a weighter that is given by name.
        steps: the largest number of optimiser steps.
        eval_every: steps between evaluations.
        patience: stop after this many evaluations without a better score.
        metric: the score that chooses the best state and decides when to stop; higher is better, so
            it cannot be ``"rmse"`` or ``"loss"``.
        batch_size: end-task rows per step.
        dev_batch_size: dev rows per step, for the dev gradient.
        aux_batch_size: rows per step of all auxiliary tasks together.
        optimizer: learning rates, weight decay and schedule; 1e-3 for body and heads by default.
        dev_head: the head of the dev gradient. It is fitted to end-task rows of earlier steps
            (``"remembered"``) or to the rows of the step (``"own-rows"``); ``"end-task"`` uses the
            end task's own head, ``"drawn"`` from aang-plugin-dev-heads draws rows for it. With
            ``"remembered"`` the first two steps measure no signals, because too few rows are
            remembered.
        dev_head_rows: how many remembered or drawn rows the dev head is fitted to.
        dev_head_fit: ``"adamw"`` for a few iterations, or ``"logistic"`` from aang-plugin-dev-heads
            for penalised logistic regression.
        dev_average: decay of the running mean of the dev gradient over steps; 0 uses no mean.
        task_clip: clip the gradient of each task over the body to this norm before weighting it.
        gradients: the engine: ``"stream"`` takes one task at a time, ``"packed"`` from
            aang-plugin-packed all together.
        meta_every: measure gradient signals every ``meta_every`` steps.
        draws_per_step: draws of tasks and rows that one step consists of; they share its rows.
        weights_every: update the weights every ``weights_every`` measured steps, from the mean of
            their signals.
        on_nan: stop at a step whose loss or gradient is NaN or infinite, or skip it.
        seed: the seed of torch's generator, which dropout draws from, and of all other draws.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    options: Mapping[str, Any] = {}
    steps: int = Field(400, gt=0)
    eval_every: int = Field(25, gt=0)
    patience: int = Field(8, gt=0)
    metric: str = "accuracy"
    batch_size: int = Field(32, gt=0)
    dev_batch_size: int = Field(32, gt=0)
    aux_batch_size: int = Field(32, gt=0)
    optimizer: OptimizerSettings = OptimizerSettings(lr=1e-3, head_lr=1e-3)
    dev_head: str = "remembered"
    dev_head_rows: int = Field(256, gt=0)
    dev_head_fit: str = "adamw"
    dev_average: float = Field(0.0, ge=0, lt=1)
    task_clip: float | None = Field(None, gt=0, allow_inf_nan=False)
    gradients: str = "stream"
    meta_every: int = Field(1, gt=0)
    draws_per_step: int = Field(1, gt=0)
    weights_every: int = Field(1, gt=0)
    on_nan: Literal["stop", "skip"] = "stop"
    seed: int = Field(0, ge=0, lt=2**63)

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> "FitOptions":
        """The options ``given`` by name.

        Raises:
            ConfigError: there is no such option, a value is impossible, or two do not go together.
        """
        try:
            made = cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name, problem = str(first["loc"][0]), first["msg"]
            if first["type"] == "extra_forbidden":
                raise ConfigError(
                    f"fit has no option {name}; it has {', '.join(cls.model_fields)}"
                ) from error
            raise ConfigError(
                f"{as_argument(name, given[name])}: {problem[:1].lower()}{problem[1:]}"
            ) from error
        for name in ("batch_size", "dev_batch_size", "aux_batch_size"):
            if getattr(made, name) < made.draws_per_step:
                raise ConfigError(
                    f"{as_argument(name, getattr(made, name))} is less than one row for each of "
                    f"the draws ({as_argument('draws_per_step', made.draws_per_step)}); give more "
                    "rows or fewer draws"
                )
        if made.metric in ("rmse", "mse", "mae", "error", "loss"):
            raise ConfigError(
                f"{as_argument('metric', made.metric)}: the model with the highest score is kept, "
                f"and {made.metric} is better when lower; choose r2, or "
                "return its negative as another score"
            )
        return made

    def settings(self, registry: Registry) -> TrainingSettings:
        """The same options in the sections that a training reads.

        Args:
            registry: where the engine and the dev head of a plug-in are looked up.
        """
        return TrainingSettings(
            optimizer=self.optimizer,
            schedule=Schedule(self.steps, self.eval_every, self.patience, self.metric),
            step=StepSettings(
                RowBudget(self.batch_size, self.dev_batch_size, self.aux_batch_size),
                meta_every=self.meta_every,
                draws_per_step=self.draws_per_step,
                weights_every=self.weights_every,
                on_nan=self.on_nan,
            ),
            seed=self.seed,
            engine=EngineSettings(
                self.gradients,
                task_clip=self.task_clip,
                plugin=find_engine(self.gradients, registry),
            ),
            dev_head=DevHeadSettings(
                *(self.dev_head, self.dev_head_rows, self.dev_head_fit),
                average=self.dev_average,
                plugins=find_dev_heads(self.dev_head, self.dev_head_fit, registry),
            ),
            called=as_argument,
        )


@dataclass(frozen=True)
class FitResult:
    """The outcome of :func:`fit`.

    Attributes:
        best_step: the step with the best dev score; the body and the end task's head are left as
            they were then.
        best_score: that score, by the chosen metric.
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
    observers: Sequence[Observer] = (),
    **options: Any,
) -> FitResult:
    """Train ``body`` on ``end_task`` beside ``auxiliaries``, in place, and keep the best state.

    Every task has its own head, ``task.head``; all tasks share the body. Under ``torchrun`` or
    ``accelerate launch``, all processes train the same model together. They start from the first
    process's modules, and all of them need the same rows.

    Args:
        body: the module that all tasks share, on the device to train on; heads are moved there.
            Batch normalisation in evaluation mode without trained parameters keeps its statistics.
        end_task: the task to be good at.
        auxiliaries: the tasks that may help it. No two tasks may have the same name, and none the
            name ``"body"``.
        dev: the end task over its dev rows, with the same head. The dev gradient and the dev loss
            are computed on it.
        evaluate: returns the dev scores of the model in its current state, with body and heads in
            evaluation mode. Weighters that score a part of the dev rows get the score of all of
            them.
        weighter: the name of a weighter, or a weighter.
        observers: called after every round and every evaluation.
        **options: how to train, see `aang_core.fitting.FitOptions`: ``steps``, ``batch_size``,
            ``optimizer`` and so on.

    Returns:
        The best step, the weights and the history; ``body`` and the end task's head hold the best
        state, the other heads the last one, all in evaluation mode.

    Raises:
        AangError: there is no weighter of that name, it has no such option, or its weights break
            the contract of weighters.
        ConfigError: ``gradients="packed"`` with ``task_clip``, with ``dev_average`` or in several
            processes, an unknown option, a number out of range, fewer rows of a kind than draws, a
            metric that is better when lower, two tasks with one name, or a body without a
            parameter to train.
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
    chosen = FitOptions.checked(options)
    _require_names([end_task, *auxiliaries])
    tasks = RunTasks(end_task, dev, auxiliaries)
    device = next((p.device for p in body.parameters() if p.requires_grad), None)
    if device is None:
        raise ConfigError("no parameter of the body requires a gradient, so no task can train it")
    processes = processes_of_environment(device)

    def scored() -> Mapping[str, float]:
        for module in (body, *tasks.heads):
            module.eval()
        if chosen.metric not in (found := evaluate()):
            raise ConfigError(
                f"{as_argument('metric', chosen.metric)}: evaluate returns {', '.join(found)}; "
                "name one of them"
            )
        return found

    torch.manual_seed(chosen.seed)
    # Loaded once, for the weighter, the engine and the dev head.
    registry = load_plugins().registry
    if isinstance(weighter, str):
        cards = [TaskCard(task.name, task.factors) for task in auxiliaries]
        end = TaskCard(end_task.name)
        made = CheckedWeighter.make(registry.weighter(weighter), end, cards, chosen.options)
    elif chosen.options:
        given = ", ".join(chosen.options)
        raise ConfigError(f"options {given}: are of a weighter given by name; give them to yours")
    else:
        made = CheckedWeighter(weighter, None, [task.name for task in (end_task, *auxiliaries)])
    history = _History()
    trainer = make_trainer(
        *(body, tasks, made, chosen.settings(registry)),
        evaluate=scored,
        score=lambda rows: scored()[chosen.metric],
        watching=Watching((history, *observers)),
        processes=processes,
    )
    processes.start_alike([body, dev.head, *tasks.heads], [end_task, dev, *auxiliaries])
    progress = trainer.train()
    return FitResult(
        best_step=progress.best_step,
        best_score=progress.best_score,
        steps=trainer.bench.steps,
        weights=made.weights(),
        history=history.records,
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
