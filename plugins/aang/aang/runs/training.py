"""Builds the trainer of a run from its assembly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch._functorch import config as functorch

from aang.assembly.assembly import Assembly, row_budget
from aang.assembly.prediction import Classifier, part_of, predict
from aang.config import TrainConfig
from aang.corpora.tokens import TokenRows
from aang_core.errors import AangError
from aang_core.gradients import DevHeadSettings, EngineSettings, check_engine
from aang_core.gradients.passes import Passes, Precision
from aang_core.tasks.meeting import tell_others
from aang_core.tasks.processes import ALONE, Processes, processes_of_environment
from aang_core.training.devices import (
    CPU,
    automatic_device,
    can_train,
    check_trains,
    device_called,
)
from aang_core.training.evaluation import LOSS, Metric
from aang_core.training.free_memory import ReturnsFreeMemory
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.precision import in_effect
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.trainer import Boundary, Observer, Schedule, Trainer


def choose_device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` means the accelerator if there is one.

    If a machine has several accelerators, each of its processes uses another one.

    Raises:
        ConfigError: there is no such device on this machine, or its processes cannot share it.
    """
    return automatic_device() if name == "auto" else device_called(name)


def choose_training_device(name: str) -> torch.device:
    """The device for training or diagnosis: as `choose_device`, but the CPU instead of Apple's MPS.

    Raises:
        ConfigError: the same, or ``name`` is a device that cannot train.
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
        # The others would wait for this process.
        tell_others(error)
        raise
    return device, processes_of_environment(device)


def check_options(config: TrainConfig, processes: Processes) -> None:
    """Refuse options that no engine supports together, before anything is loaded.

    Raises:
        ConfigError: ``--gradients packed`` is combined with an option that it does not support.
    """
    check_engine(_engine_settings(config), dev_head_settings(config), processes)


def build_trainer(
    config: TrainConfig,
    assembly: Assembly,
    device: torch.device,
    observers: Sequence[Observer] = (),
    boundary: Boundary | None = None,
    processes: Processes = ALONE,
) -> Trainer:
    """Build the trainer of a run.

    Args:
        config: the run's options.
        assembly: its model, rows, tasks and weighter.
        device: the device to train on.
        observers: told about every round and every evaluation.
        boundary: called between two rounds, when a checkpoint can be saved.
        processes: the processes that share the training.
    """
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
    return make_trainer(
        body,
        assembly.end_task,
        assembly.meta,
        assembly.auxiliaries,
        assembly.weighter,
        TrainingSettings(
            optimizer=replace(
                base_optimizer(config),
                head_weight_decay=config.head_weight_decay,
                clip_apart=config.clip_apart,
            ),
            schedule=Schedule(config.steps, config.eval_every, config.patience, config.metric),
            rows=row_budget(config),
            seed=config.seed,
            engine=_engine_settings(config),
            dev_head=dev_head_settings(config),
            meta_every=config.meta_every,
            draws_per_step=config.draws_per_step,
            weights_every=config.weights_every,
            on_nan=config.on_nan,
        ),
        evaluate=lambda: score_rows(
            assembly,
            assembly.dev,
            processes,
            metric=config.metric,
            precision=in_effect(config.precision),
        ),
        score=_dev_score(config, assembly, processes),
        head_reads=assembly.end_task.head_reads,
        streams=assembly.streams,
        observers=observers,
        boundary=boundary,
        processes=processes,
    )


def base_optimizer(config: TrainConfig) -> OptimizerSettings:
    """The optimiser settings that all trainings of a run share; stages change the rates."""
    return OptimizerSettings(
        lr=config.lr,
        head_lr=config.head_lr,
        weight_decay=config.weight_decay,
        eps=config.adam_eps,
        warmup=config.warmup,
        max_grad_norm=config.max_grad_norm,
    )


def _dev_score(
    config: TrainConfig, assembly: Assembly, processes: Processes
) -> Callable[[int | None], float]:
    """Make the dev metric for weighters, over all or some of the dev rows that they learn from."""
    rows = assembly.meta.rows

    def score(count: int | None) -> float:
        part = None if count is None else part_of(len(rows), count, config.seed)
        precision = in_effect(config.precision)
        return score_rows(assembly, rows, processes, part, config.metric, precision)[config.metric]

    return score


def _engine_settings(config: TrainConfig) -> EngineSettings:
    return EngineSettings(
        kind=config.gradients,
        precision=in_effect(config.precision),
        task_clip=config.task_clip,
        save_memory=config.save_memory,
        compile=config.compile,
    )


def dev_head_settings(config: TrainConfig) -> DevHeadSettings:
    """The options of the dev head."""
    return DevHeadSettings(
        kind=config.dev_head,
        rows=config.dev_head_rows,
        fit=config.dev_head_fit,
        iterations=config.dev_head_steps,
        lr=config.dev_head_lr,
        weight_decay=config.dev_head_weight_decay,
        average=config.dev_average,
    )


def score_rows(
    assembly: Assembly,
    rows: TokenRows,
    processes: Processes = ALONE,
    part: Tensor | None = None,
    metric: Metric = "macro-f1",
    precision: Precision = "fp32",
) -> Mapping[str, float]:
    """The scores of the model in its current state on dev rows, and its mean loss as ``loss``.

    The main training scores in its own precision, which saves most of the time of an evaluation in
    fp32. The scores that a run ends with are those of the saved model, in fp32.

    Args:
        assembly: the model.
        rows: labelled rows; a threshold, if the kind of task has one, is chosen on them.
        processes: the processes that share the rows.
        part: indices of the rows to score, int64 ``[N]``; None scores all of them.
        metric: the metric that such a threshold is chosen by.
        precision: of the forward passes.
    """
    task_type, labels = assembly.end_task.task_type, rows.truth(part)
    classifier = Classifier(assembly.model.body, assembly.model.classifier)
    with Passes(assembly.model.body, precision).autocast():
        logits = predict(classifier, rows, processes=processes, part=part)
    loss = task_type.losses(logits.float(), labels).mean()
    return {**task_type.tuned(labels, logits, metric).scores(labels, logits), LOSS: float(loss)}
