"""Training of an encoder on a single objective, for pre-training and ``prepare-encoder``."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.plan import StageSettings
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.runs.computing import in_effect
from aang.runs.preparation_config import PreparationConfig
from aang_core.contracts import CheckedOutput
from aang_core.gradients import DevHeadSettings, EngineSettings
from aang_core.gradients.passes import Passes, Precision
from aang_core.plugins.primitive import Primitive
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import RowLosses, Task
from aang_core.tasks.weighting import TaskCard
from aang_core.training.bench import RunTasks, StepSettings
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.evaluation import LOG_LIKELIHOOD
from aang_core.training.interruption import Interruption
from aang_core.training.numbers import OnNan
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.rows import RowBudget
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.trainer import Clock, Observer, Schedule, Trainer, Watching

METRIC = LOG_LIKELIHOOD
"""Mean log-likelihood of the targets in held-out texts, in nats."""
ACCURACY = "accuracy"
"""Share of the targets that the head predicts correctly, for outputs that count hits."""


@dataclass(frozen=True)
class EncoderTraining:
    """How long and how fast an encoder is trained.

    Either ``steps`` or ``seconds`` is given, not both; the learning rates rise and fall over it.
    """

    optimizer: OptimizerSettings
    steps: int | None
    seconds: float | None
    eval_every: int
    batch_size: int
    micro_batch_size: int | None
    precision: Precision
    seed: int
    on_nan: OnNan
    checkpoint_every: float


def encoder_settings(
    config: TrainConfig | PreparationConfig, pace: StageSettings | PreparationConfig
) -> EncoderTraining:
    """The settings of encoder training.

    Args:
        config: the options of the whole command.
        pace: steps, rows per step and learning rates: the settings of a stage of pre-training, or
            the options of a preparation.
    """
    optimizer = OptimizerSettings(
        lr=pace.lr,
        head_lr=pace.head_lr,
        weight_decay=config.weight_decay,
        warmup=config.warmup,
        max_grad_norm=config.max_grad_norm,
    )
    if isinstance(config, TrainConfig):
        optimizer = replace(optimizer, eps=config.adam_eps)
    return EncoderTraining(
        optimizer=optimizer,
        steps=pace.steps,
        seconds=pace.seconds if isinstance(pace, PreparationConfig) else None,
        eval_every=pace.eval_every,
        batch_size=pace.batch_size,
        micro_batch_size=config.micro_batch_size,
        precision=in_effect(config.precision),
        seed=config.seed,
        on_nan=config.on_nan,
        checkpoint_every=config.checkpoint_every,
    )


@dataclass(frozen=True)
class TrainedEncoder:
    """The outcome of encoder training; the encoder keeps the state of its last step.

    Attributes:
        steps: the number of steps.
        seconds: seconds of training, over all interruptions.
        body_rows: rows that went through the encoder to train.
        before: held-out scores before the training.
        after: held-out scores after it.
        best_step: the step with the best held-out scores.
    """

    steps: int
    seconds: float
    body_rows: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    best_step: int

    @property
    def got_worse(self) -> bool:
        """Whether held-out texts became less likely."""
        return self.after[METRIC] < self.before[METRIC]

    def __getitem__(self, name: str) -> dict[str, float]:
        """The score ``name`` before and after."""
        return {"before": self.before[name], "after": self.after[name]}


@dataclass(frozen=True)
class EncoderRows:
    """The rows of an objective that an encoder is trained and evaluated on.

    Attributes:
        task: the objective.
        train: the rows to train on.
        held_out: the rows to evaluate on.
    """

    task: ObjectiveTask
    train: Task
    held_out: Task


def train_encoder(
    body: nn.Module,
    rows: EncoderRows,
    settings: EncoderTraining,
    folder: RunFolder,
    place: str,
    *,
    alone: Primitive,
    finish: Callable[[TrainedEncoder], None],
    observe: Callable[[Clock], Sequence[Observer]],
    interruption: Interruption,
    processes: Processes = ALONE,
) -> TrainedEncoder:
    """Train ``body`` and the objective's head for the given steps or seconds.

    Training continues from the last checkpoint, if there is one. The state of the last step is
    kept, as Gururangan et al. (2020) do; held-out scores are reported but choose nothing.

    Several processes share the rows of a step, and each draws the corruptions of its own share. So
    the number of processes changes what is drawn.

    Args:
        body: the encoder, on its device.
        rows: the objective and its rows.
        settings: how long and how fast.
        folder: the run folder, or the folder of the preparation.
        place: where checkpoints and ``metrics.jsonl`` are written, below ``folder``.
        alone: the weighter that trains the end task alone; here the objective takes its place.
        finish: writes the trained encoder; checkpoints are deleted afterwards.
        observe: makes the observers, given the clock of the training.
        interruption: where a request to stop arrives.
        processes: the processes that share the training.

    Raises:
        Interrupted: ``interruption`` asked to stop; a checkpoint has been written.
    """
    clock = Clock(settings.seconds)
    looks = _Looks(Passes(body, settings.precision), rows, settings.seed)
    trainer = _trainer(body, rows, settings, alone, clock, looks, observe(clock), processes)
    checkpointer = Checkpointer(
        folder,
        str(Path(place, "checkpoints")),
        (str(Path(place, "metrics.jsonl")),),
        seconds=settings.checkpoint_every,
        interruption=interruption,
        processes=processes,
    )
    trainer.boundary = checkpointer
    before = looks.at(0)
    checkpointer.load(trainer)
    processes.wait()
    progress = trainer.train()
    trained = TrainedEncoder(
        steps=trainer.bench.steps,
        seconds=trainer.clock.seconds,
        body_rows=trainer.bench.steps * settings.batch_size,
        before=before,
        after=looks.at(trainer.bench.steps),
        best_step=progress.best_step,
    )
    finish(trained)
    checkpointer.drop_all()
    processes.wait()
    return trained


def _trainer(
    body: nn.Module,
    rows: EncoderRows,
    settings: EncoderTraining,
    alone: Primitive,
    clock: Clock,
    looks: "_Looks",
    observers: Sequence[Observer],
    processes: Processes,
) -> Trainer:
    task = rows.task
    steps = sys.maxsize if settings.steps is None else settings.steps
    card = TaskCard(task.name, task.factors)
    trainer: Trainer

    def evaluate() -> Mapping[str, float]:
        return looks.at(trainer.bench.steps)

    trainer = make_trainer(
        body,
        RunTasks(
            rows.train,
            rows.held_out,
            [],
            {task.factors["data"]: task.rows} if isinstance(task.rows, StreamRows) else {},
        ),
        CheckedWeighter.make(alone, card, [], {}),
        TrainingSettings(
            optimizer=settings.optimizer,
            # No early stopping: held-out scores choose nothing.
            schedule=Schedule(steps, settings.eval_every, sys.maxsize, METRIC, keep_best=False),
            step=StepSettings(
                RowBudget(settings.batch_size, 1, 1, settings.micro_batch_size),
                on_nan=settings.on_nan,
            ),
            seed=settings.seed,
            engine=EngineSettings(precision=settings.precision),
            dev_head=DevHeadSettings(kind="end-task"),
        ),
        evaluate=evaluate,
        watching=Watching(observers, clock=clock),
        processes=processes,
    )
    return trainer


class _Looks:
    """Held-out scores, computed once per step."""

    def __init__(self, passes: Passes, rows: EncoderRows, seed: int) -> None:
        self._passes = passes
        self._rows = rows
        self._seed = seed
        self._step: int | None = None
        self._scores: Mapping[str, float] = {}

    def at(self, step: int) -> Mapping[str, float]:
        """The scores of the encoder in its current state, which is that after ``step``."""
        if step != self._step:
            self._scores = held_out_scores(self._passes, self._rows, seed=self._seed)
            self._step = step
        return self._scores


@torch.inference_mode()
def held_out_scores(
    passes: Passes, rows: EncoderRows, *, seed: int, batch_size: int = 64
) -> Mapping[str, float]:
    """Mean log-likelihood of the targets, and the share of them that is predicted correctly.

    The same seed gives the same targets.
    """
    task = rows.held_out
    passes.body.eval()
    task.head.eval()
    device = next(passes.body.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    parts: list[RowLosses] = []
    hits: list[Tensor] = []
    output = rows.task.output
    for indices in _by_length(task).split(batch_size):
        batch = task.batch(indices, generator).to(device)
        features = passes.features(batch)
        losses = passes.losses(task, task.head, features, batch)
        parts.append(RowLosses(losses.sums.float(), losses.counts))
        if isinstance(output, CheckedOutput) and output.counts_hits:
            with passes.autocast():
                hits.append(output.hits(task.head, features, batch.targets))
    pooled = RowLosses.pool(parts)
    found = {METRIC: -float(pooled.mean())}
    if hits:
        found[ACCURACY] = float(torch.cat(hits).sum() / pooled.counts.sum().clamp(min=1))
    return found


def _by_length(task: Task) -> Tensor:
    lengths = task.lengths
    return torch.arange(len(task)) if lengths is None else torch.argsort(lengths, stable=True)
