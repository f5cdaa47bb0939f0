"""From an assembly to the trainer that trains it."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch._functorch import config as functorch

from aang_core.assembly.assembly import Assembly, row_budget
from aang_core.assembly.prediction import Classifier, part_of, predict
from aang_core.config import TrainConfig
from aang_core.corpora.tokens import TokenRows
from aang_core.errors import ConfigError
from aang_core.gradients import (
    DevHead,
    DevHeadSettings,
    GradientEngine,
    PackedEngine,
    TaskClip,
    choose_dev_head,
    first_token,
    task_by_task,
)
from aang_core.tasks.processes import ALONE, Processes, local_rank
from aang_core.training.bench import TrainingBench
from aang_core.training.evaluation import scores
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.precision import in_effect
from aang_core.training.trainer import Boundary, Observer, Schedule, Trainer


def choose_device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` takes the accelerator if there is one.

    Of several accelerators, each process on a machine takes its own.

    Raises:
        ConfigError: torch knows no such device here.
    """
    if name == "auto":
        found = torch.accelerator.current_accelerator(check_available=True)
        if found is None:
            return torch.device("cpu")
        return torch.device(found.type, local_rank() % torch.accelerator.device_count())
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name}: not available here: {error}") from error
    return device


def check_engine(config: TrainConfig, processes: Processes) -> None:
    """Refuse options that no engine has together, before anything is loaded.

    Raises:
        ConfigError: ``--gradients packed`` with what it cannot do.
    """
    if config.gradients != "packed":
        return
    if processes.size > 1:
        raise ConfigError(
            "--gradients packed: runs all tasks together, which several processes cannot share; "
            "leave it out or give stream"
        )
    if config.save_memory:
        raise ConfigError(
            "--gradients packed: needs the activations of all layers, which --save-memory drops; "
            "leave one of them out"
        )
    if config.compile:
        raise ConfigError(
            "--gradients packed: looks at every module of the encoder, which --compile makes one "
            "kernel of; leave one of them out"
        )
    for option, value in (("--task-clip", config.task_clip), ("--dev-average", config.dev_average)):
        if value:
            raise ConfigError(
                f"--gradients packed: drops each gradient before it is whole, which {option} "
                "needs; leave one of them out"
            )


def build_trainer(
    config: TrainConfig,
    assembly: Assembly,
    device: torch.device,
    observers: Sequence[Observer] = (),
    boundary: Boundary | None = None,
    processes: Processes = ALONE,
) -> Trainer:
    """The trainer of a run on ``device``.

    boundary: told between two rounds, where a checkpoint can be taken.
    processes: those that share the training.
    """
    body, head = assembly.model.body.to(device), assembly.model.classifier.to(device)
    if config.save_memory:
        assembly.model.body.save_memory()
    if config.compile:
        # Tasks that share a forward pass go back through it one after the other, so the buffers of
        # the first backward pass must not be given away.
        functorch.donated_buffer = False
        # The lengths of batches differ; kernels that take any spare compiling for each.
        body.compile(dynamic=True)
    heads = [task.head.to(device) for task in assembly.auxiliaries]
    generator = torch.Generator().manual_seed(config.seed)
    bench = TrainingBench(
        body,
        assembly.end_task,
        assembly.meta,
        assembly.auxiliaries,
        engine=_engine(config, body, _dev_head(config, body, generator), device, processes),
        optimization=Optimization(
            body,
            [head, *heads],
            OptimizerSettings(
                lr=config.lr,
                head_lr=config.head_lr,
                weight_decay=config.weight_decay,
                head_weight_decay=config.head_weight_decay,
                eps=config.adam_eps,
                warmup=config.warmup,
                max_grad_norm=config.max_grad_norm,
                clip_apart=config.clip_apart,
            ),
            config.steps,
        ),
        budget=row_budget(config),
        generator=generator,
        meta_every=config.meta_every,
        draws_per_step=config.draws_per_step,
        weights_every=config.weights_every,
        streams=assembly.streams,
        score=_dev_score(config, assembly, processes),
        on_nan=config.on_nan,
    )
    return Trainer(
        bench,
        assembly.weighter,
        schedule=Schedule(config.steps, config.eval_every, config.patience, config.metric),
        selected={"body": body, "head": head},
        evaluate=lambda: score_rows(assembly, assembly.dev, processes),
        observers=tuple(observers),
        boundary=boundary,
    )


def _dev_score(
    config: TrainConfig, assembly: Assembly, processes: Processes
) -> Callable[[int | None], float]:
    """The dev metric for weighters: over the dev rows that they learn from, or a part of those."""
    rows = assembly.meta.rows

    def score(count: int | None) -> float:
        part = None if count is None else part_of(len(rows), count, config.seed)
        return score_rows(assembly, rows, processes, part)[config.metric]

    return score


def _engine(
    config: TrainConfig,
    body: torch.nn.Module,
    dev_head: DevHead,
    device: torch.device,
    processes: Processes,
) -> GradientEngine:
    """On a CPU small passes cost no more than large ones; an accelerator idles in them."""
    limit = config.micro_batch_size
    whole = config.save_memory or config.compile or config.task_clip or config.dev_average
    auto = device.type != "cpu" and not whole
    packed = config.gradients == "packed" or (config.gradients == "auto" and auto)
    if packed and processes.size == 1:
        return PackedEngine(body, dev_head, in_effect(config.precision), max_rows=limit)
    return task_by_task(
        *(body, dev_head, in_effect(config.precision)),
        processes=processes,
        hold_end_task=limit is None,
        clip=TaskClip(config.task_clip),
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


def _dev_head(config: TrainConfig, body: torch.nn.Module, generator: torch.Generator) -> DevHead:
    return choose_dev_head(
        *(dev_head_settings(config), body, generator),
        precision=in_effect(config.precision),
        keep=first_token,
    )


def score_rows(
    assembly: Assembly,
    rows: TokenRows,
    processes: Processes = ALONE,
    part: Tensor | None = None,
) -> Mapping[str, float]:
    """Scores of the classifier as it stands, the rows shared among ``processes``.

    part: int64 indices of the rows to score; None for all of them.
    """
    assert rows.labels is not None
    labels = rows.labels if part is None else rows.labels[part]
    classifier = Classifier(assembly.model.body, assembly.model.classifier)
    logits = predict(classifier, rows, processes=processes, part=part)
    return scores(labels.tolist(), logits.argmax(dim=-1).tolist())
