"""From an assembly to the trainer that trains it."""

from collections.abc import Mapping, Sequence

import torch

from aang_core.build.assembly import Assembly
from aang_core.build.prediction import Classifier, predict
from aang_core.config import TrainConfig
from aang_core.corpora.tokens import TokenRows
from aang_core.errors import ConfigError
from aang_core.gradients import (
    DevHead,
    EndTaskHead,
    FreshDevHead,
    GradientEngine,
    PackedEngine,
    RememberingDevHead,
    task_by_task,
)
from aang_core.processes import ALONE, Processes, local_rank
from aang_core.training.bench import RowBudget, TrainingBench
from aang_core.training.evaluation import scores
from aang_core.training.optimization import Optimization, OptimizerSettings
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
        # The lengths of batches differ; kernels that take any spare compiling for each.
        body.compile(dynamic=True)
    heads = [task.head.to(device) for task in assembly.auxiliaries]
    generator = torch.Generator().manual_seed(config.seed)
    bench = TrainingBench(
        body,
        assembly.end_task,
        assembly.meta,
        assembly.auxiliaries,
        engine=_engine(config, body, _dev_head(config, generator), device, processes),
        optimization=Optimization(
            body,
            [head, *heads],
            OptimizerSettings(
                lr=config.lr,
                head_lr=config.head_lr,
                weight_decay=config.weight_decay,
                warmup=config.warmup,
                max_grad_norm=config.max_grad_norm,
            ),
            config.steps,
        ),
        budget=RowBudget(
            config.batch_size,
            config.dev_batch_size,
            config.aux_batch_size,
            config.micro_batch_size,
        ),
        generator=generator,
        meta_every=config.meta_every,
        streams=assembly.streams,
        score=lambda: score_rows(assembly, assembly.dev, processes)[config.metric],
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


def _engine(
    config: TrainConfig,
    body: torch.nn.Module,
    dev_head: DevHead,
    device: torch.device,
    processes: Processes,
) -> GradientEngine:
    """On a CPU small passes cost no more than large ones; an accelerator idles in them."""
    limit = config.micro_batch_size
    auto = device.type != "cpu" and not config.save_memory and not config.compile
    packed = config.gradients == "packed" or (config.gradients == "auto" and auto)
    if packed and processes.size == 1:
        return PackedEngine(body, dev_head, config.precision, max_rows=limit)
    return task_by_task(
        body, dev_head, config.precision, processes=processes, hold_end_task=limit is None
    )


def _dev_head(config: TrainConfig, generator: torch.Generator) -> DevHead:
    if config.dev_head == "end-task":
        return EndTaskHead()
    fresh = FreshDevHead(
        generator,
        iterations=config.dev_head_steps,
        lr=config.dev_head_lr,
        weight_decay=config.dev_head_weight_decay,
    )
    if config.dev_head == "fresh":
        return fresh
    # Classification reads the first token, so that is all there is to remember.
    return RememberingDevHead(fresh, config.dev_head_memory, keep=lambda f: f[:, :1].clone())


def score_rows(
    assembly: Assembly, rows: TokenRows, processes: Processes = ALONE
) -> Mapping[str, float]:
    """Scores of the classifier as it stands, the rows shared among ``processes``."""
    assert rows.labels is not None
    classifier = Classifier(assembly.model.body, assembly.model.classifier)
    logits = predict(classifier, rows, processes=processes)
    return scores(rows.labels.tolist(), logits.argmax(dim=-1).tolist())
