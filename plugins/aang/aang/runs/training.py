"""What all trainings of a run have in common: device, processes, observers, trainer, scores."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch._functorch import config as functorch

from aang.assembly.assembly import Assembly
from aang.assembly.prediction import Classifier, predict
from aang.config import TrainConfig
from aang.corpora.tokens import TokenRows
from aang.runs.computing import in_effect
from aang.runs.devices import CPU, choose_device
from aang.runs.memory import ReturnsFreeMemory
from aang.runs.schema import DevScores
from aang.task_types.metrics import LOSS
from aang_core.errors import AangError
from aang_core.fitting import TrainingSettings, can_train, check_trains, make_trainer
from aang_core.gradients import DevHeadSettings, EngineSettings
from aang_core.gradients.engine import check_engine
from aang_core.gradients.passes import Passes, Precision
from aang_core.plugins.primitive import Primitive, TargetEntry
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.processes import ALONE, Processes, processes_of_environment
from aang_core.tasks.weighting import TaskCard
from aang_core.training.bench import RunTasks, StepSettings
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.rows import RowBudget
from aang_core.training.trainer import Boundary, Observer, Schedule, Trainer, Watching

if TYPE_CHECKING:
    from aang_plugin_prepare.config import PreparationConfig

    from aang.runs.summary import Summary

Observe = Callable[[str, int, str], Sequence[Observer]]
"""Makes the observers of one training, given its name, its number of steps and its metric.

The name is that of a stage of pre-training, ``final-fine-tuning``, or empty for the main training.
"""


def _silent(said: object) -> None:
    """Does nothing."""


@dataclass(frozen=True)
class During:
    """What all trainings of a run have in common.

    Attributes:
        observe: makes their observers.
        announce: called with the summary of the run before training begins.
        say: called with each sentence that a user may want to read before training begins, such as
            the notes of reading the data.
        interruption: where a request to stop arrives. It takes effect at once before the run folder
            is created, and between two rounds afterwards.
        device: the device that they compute on.
        processes: the processes that share them.
    """

    observe: Observe = lambda stage, steps, metric: ()
    announce: "Callable[[Summary], None]" = _silent
    say: Callable[[str], None] = _silent
    interruption: Interruption = field(default_factory=Interruption)
    device: torch.device = CPU
    processes: Processes = ALONE


def choose_training_device(name: str) -> torch.device:
    """The device for training or diagnosis: like `choose_device`, but CPU instead of Apple's MPS.

    Raises:
        ConfigError: as for `choose_device`, or ``name`` is a device that cannot train.
    """
    device = choose_device(name)
    if name == "auto" and not can_train(device):
        return CPU
    check_trains(device)
    return device


def join(name: str) -> tuple[torch.device, Processes]:
    """Choose the device that ``--device`` names, and join the other processes of the training.

    Returns:
        The device, and the processes.

    Raises:
        AangError: this process or another one has no such device, or they cannot find each other.
    """
    try:
        device = choose_training_device(name)
    except AangError as error:
        processes_of_environment(error)  # The others would wait for this process.
        raise
    return device, processes_of_environment(device)


def check_options(config: TrainConfig, engine: TargetEntry | None, processes: Processes) -> None:
    """Refuse options that no engine supports together, before anything is loaded.

    Raises:
        ConfigError: ``--gradients`` names an engine, with an option that it does not support.
    """
    check_engine(_engine_settings(config, engine), _dev_head_settings(config, {}), processes)


def build_trainer(
    assembly: Assembly,
    device: torch.device,
    observers: Sequence[Observer] = (),
    boundary: Boundary | None = None,
    processes: Processes = ALONE,
) -> Trainer:
    """Build the trainer of a run.

    Args:
        assembly: its options, model, rows, tasks and weighter.
        device: the device to train on.
        observers: called after every round and every evaluation.
        boundary: called between two rounds, when a checkpoint can be saved.
        processes: the processes that share the training.
    """
    config, meta = assembly.config, assembly.meta.rows
    precision = in_effect(config.precision)
    body = assembly.model.body.to(device)
    if config.save_memory:
        assembly.model.body.save_memory()
    if config.compile:
        # Tasks that share a forward pass run their backward passes through it one after the other,
        # so the first backward pass must not free the buffers.
        functorch.donated_buffer = False
        # The lengths of batches differ; dynamic kernels need no compilation for each length.
        body.compile(dynamic=True)
    if device.type == "cpu":
        observers = [*observers, ReturnsFreeMemory()]

    def score(count: int | None) -> float:
        part = None if count is None else part_of(len(meta), count, config.seed)
        return score_rows(assembly, meta, processes, part, precision)[config.metric]

    return make_trainer(
        body,
        RunTasks(assembly.end_task, assembly.meta, assembly.auxiliaries, assembly.streams),
        assembly.weighter,
        TrainingSettings(
            optimizer=replace(
                base_optimizer(config),
                head_weight_decay=config.head_weight_decay,
                clip_apart=config.clip_apart,
                optimizer=config.optimizer,
                momentum=config.momentum,
                schedule=config.schedule,
            ),
            schedule=Schedule(
                config.steps,
                config.eval_every,
                sys.maxsize if config.train_on_dev else config.patience,
                config.metric,
                keep_best=not config.train_on_dev,
                stop_after=config.stop_after,
            ),
            step=StepSettings(
                assembly.row_budget,
                meta_every=config.meta_every,
                draws_per_step=config.draws_per_step,
                weights_every=config.weights_every,
                on_nan=config.on_nan,
            ),
            seed=config.seed,
            engine=_engine_settings(config, assembly.sources.engine),
            dev_head=_dev_head_settings(config, assembly.sources.dev_heads),
        ),
        evaluate=lambda: score_rows(assembly, assembly.dev, processes, precision=precision),
        score=score,
        watching=Watching(observers, boundary),
        processes=processes,
    )


def base_optimizer(config: "TrainConfig | PreparationConfig") -> OptimizerSettings:
    """The optimiser settings that all trainings of a run share.

    ``--optimizer`` is not one of them: stages and the final fine-tuning have rates of their own,
    which suit AdamW.
    """
    return OptimizerSettings(
        lr=config.lr,
        head_lr=config.head_lr,
        weight_decay=config.weight_decay,
        eps=config.adam_eps,
        warmup=config.warmup,
        max_grad_norm=config.max_grad_norm,
    )


def settings_alone(
    config: "TrainConfig | PreparationConfig",
    optimizer: OptimizerSettings,
    schedule: Schedule,
    batch_size: int,
) -> TrainingSettings:
    """The settings of a training on a single task.

    Args:
        config: the options of the whole command.
        optimizer: its optimiser.
        schedule: its steps and evaluations.
        batch_size: its rows per step.
    """
    return TrainingSettings(
        optimizer=optimizer,
        schedule=schedule,
        step=StepSettings(
            RowBudget(batch_size, 1, 1, config.micro_batch_size), on_nan=config.on_nan
        ),
        seed=config.seed,
        engine=EngineSettings(precision=in_effect(config.precision)),
        dev_head=DevHeadSettings(kind="end-task"),
    )


def checkpoints_in(
    folder: RunFolder,
    place: str,
    config: "TrainConfig | PreparationConfig",
    during: During,
    logs: Sequence[str] = (DevScores.file,),
) -> Checkpointer:
    """The checkpoints of a training, in the folder ``place`` of the run, with its logs there."""
    return Checkpointer(
        folder,
        str(Path(place, "checkpoints")),
        [str(Path(place, name)) for name in logs],
        seconds=config.checkpoint_every,
        interruption=during.interruption,
        processes=during.processes,
    )


@contextmanager
def trained_alone(
    body: nn.Module,
    tasks: RunTasks,
    alone: Primitive,
    settings: TrainingSettings,
    checkpointer: Checkpointer,
    *,
    evaluate: Callable[[int], Mapping[str, float]],
    watching: Watching,
    processes: Processes,
) -> Iterator[Trainer]:
    """Train on a single task, from the last checkpoint if there is one.

    Checkpoints are deleted at the end of the block, which writes what was trained.

    Args:
        body: the module to train, on its device.
        tasks: the task as the end task, with no auxiliary ones.
        alone: the weighter that trains the end task alone.
        settings: the options, from `settings_alone`.
        checkpointer: its checkpoints.
        evaluate: returns the scores of the current model, given the number of steps so far.
        watching: the observers, and how long it may take.
        processes: the processes that share the training.

    Yields:
        The trainer, when it has trained.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    card = TaskCard(tasks.end_task.name, tasks.end_task.factors)
    trainer: Trainer = make_trainer(
        body,
        tasks,
        CheckedWeighter.make(alone, card, [], {}),
        settings,
        evaluate=lambda: evaluate(trainer.bench.steps),
        watching=replace(watching, boundary=checkpointer),
        processes=processes,
    )
    checkpointer.load(trainer)
    processes.wait()
    trainer.train()
    yield trainer
    checkpointer.drop_all()
    processes.wait()


def _engine_settings(config: TrainConfig, engine: TargetEntry | None) -> EngineSettings:
    return EngineSettings(
        kind=config.gradients,
        precision=in_effect(config.precision),
        task_clip=config.task_clip,
        save_memory=config.save_memory,
        compile=config.compile,
        plugin=engine,
    )


def _dev_head_settings(config: TrainConfig, plugins: Mapping[str, TargetEntry]) -> DevHeadSettings:
    return DevHeadSettings(
        kind=config.dev_head,
        rows=config.dev_head_rows,
        fit=config.dev_head_fit,
        iterations=config.dev_head_steps,
        lr=config.dev_head_lr,
        weight_decay=config.dev_head_weight_decay,
        average=config.dev_average,
        plugins=plugins,
    )


def part_of(rows: int, count: int, seed: int) -> Tensor:
    """Draw ``count`` of the indices below ``rows``, or all if there are fewer.

    With the same seed, a larger part contains every smaller one.

    Returns:
        The indices, int64, ascending.
    """
    drawn = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:count]
    return drawn.sort().values


def score_rows(
    assembly: Assembly,
    rows: TokenRows,
    processes: Processes = ALONE,
    part: Tensor | None = None,
    precision: Precision = "fp32",
) -> Mapping[str, float]:
    """The scores of the model in its current state on dev rows, and its mean loss as ``loss``.

    The main training scores in its own precision, which saves most of the time of an evaluation in
    fp32. The scores that a run ends with are those of the saved model, in fp32.

    Args:
        assembly: the model, and the metric by which a threshold is chosen on the rows if the kind
            of task has one.
        rows: labelled rows.
        processes: the processes that share the rows.
        part: indices of the rows to score, int64 ``[N]``; None scores all of them.
        precision: of the forward passes.
    """
    task_type, labels = assembly.end_task.task_type, rows.truth(part)
    classifier = Classifier(assembly.model)
    with Passes(assembly.model.body, precision).autocast():
        logits = predict(classifier, rows, processes=processes, part=part)
    loss = task_type.losses(logits.float(), labels).mean()
    tuned = task_type.tuned(labels, logits, assembly.config.metric)
    return {**tuned.scores(labels, logits), LOSS: float(loss)}
