"""Continued pre-training on one objective alone (Gururangan et al., 2020), as a stage of a run."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aang_core.build.assembly import assemble_stage
from aang_core.build.objective_task import ObjectiveTask
from aang_core.build.sources import Sources
from aang_core.build.stage import PretrainingStage
from aang_core.build.stream_rows import StreamRows
from aang_core.config import TrainConfig
from aang_core.errors import DataError
from aang_core.gradients import EndTaskHead, task_by_task
from aang_core.gradients.passes import Passes
from aang_core.processes import ALONE, Processes
from aang_core.tasks import RowLosses, RowSubset, Task
from aang_core.training.bench import RowBudget, TrainingBench
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.run_folder import RunFolder
from aang_core.training.trainer import Observer, Schedule, Trainer
from aang_core.weighting import TaskCard

METRIC = "log-likelihood"
"""What a stage stops by: of the targets in held-out texts, their mean, in nats."""

HELD_OUT_FRACTION = 0.1
MOST_HELD_OUT = 512
"""More texts tell no more, and all are passed through the encoder at every evaluation."""


def pretrain(
    config: TrainConfig,
    sources: Sources,
    stage: PretrainingStage,
    folder: RunFolder,
    *,
    device: torch.device,
    observers: Sequence[Observer] = (),
    interruption: Interruption,
    processes: Processes = ALONE,
) -> Mapping[str, Any]:
    """Train the encoder of ``sources`` on the stage's objective and save it under ``folder``.

    A tenth of the texts, at most 512, is held out: training stops when their log-likelihood stops
    rising, and the best state is saved, as an ordinary masked-LM folder ``model``.

    A stage that has finished, as ``stage.json`` there says, is not trained again; one that was
    interrupted goes on from its last checkpoint.

    Several processes share the stage's rows, and each draws for its share what the objective draws:
    another number of them is another draw.

    Returns the stage's part of ``result.json``.

    Raises:
        DataError: the objective's data has fewer than two texts.
        Interrupted: ``interruption`` asked to stop; what was trained is kept.
    """
    place = Path("pretraining") / stage.name
    finished = folder.path / place / "stage.json"
    if finished.is_file():
        return _finished_stage(finished, str(place / "model"))
    model, task = assemble_stage(config, sources, stage)
    body, head = model.body.to(device), task.head.to(device)
    train, held_out = hold_out(task, config.seed)
    passes = Passes(body, config.precision)
    settings = stage.settings
    generator = torch.Generator().manual_seed(config.seed)
    bench = TrainingBench(
        body,
        train,
        held_out,
        [],
        engine=task_by_task(body, EndTaskHead(), config.precision, processes=processes),
        optimization=Optimization(
            body,
            [head],
            OptimizerSettings(
                lr=settings.lr,
                head_lr=settings.head_lr,
                weight_decay=config.weight_decay,
                warmup=config.warmup,
                max_grad_norm=config.max_grad_norm,
            ),
            settings.steps,
        ),
        budget=RowBudget(settings.batch_size, 1, 1, config.micro_batch_size),
        generator=generator,
        streams={stage.objective.data.key: task.rows} if isinstance(task.rows, StreamRows) else {},
        on_nan=config.on_nan,
    )
    checkpointer = Checkpointer(
        folder,
        f"{place}/checkpoints",
        (f"{place}/metrics.jsonl",),
        seconds=config.checkpoint_every,
        interruption=interruption,
        processes=processes,
    )
    assert sources.alone is not None
    trainer = Trainer(
        bench,
        sources.alone.make(TaskCard(task.name, task.factors), []),
        schedule=Schedule(settings.steps, settings.eval_every, settings.patience, METRIC),
        selected={"body": body, "head": head},
        evaluate=lambda: log_likelihood(passes, held_out, seed=config.seed),
        observers=(_Log(folder, stage.name), *observers),
        boundary=checkpointer,
    )
    started = time.perf_counter()
    before = log_likelihood(passes, held_out, seed=config.seed)[METRIC]
    checkpointer.take_up(trainer)
    processes.wait()
    progress = trainer.train()
    folder.write_folder(f"{place}/model", lambda to: model.save_language_model(to, head))
    outcome = {
        "objective": stage.objective.name,
        "texts": {"train": len(train), "held_out": len(held_out)},
        "steps": bench.steps,
        "best_step": progress.best_step,
        METRIC: {"before": before, "after": progress.best_score},
        "train_seconds": round(time.perf_counter() - started, 3),
        "model": str(place / "model"),
    }
    folder.write_json(f"{place}/stage.json", outcome)
    checkpointer.drop_all()
    processes.wait()
    return outcome


def _finished_stage(path: Path, model: str) -> Mapping[str, Any]:
    """What ``stage.json`` says of a stage whose model is in the folder ``model`` of the run.

    Raises:
        DataError: it is damaged, or names another folder.
    """
    try:
        done = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: is damaged: {error}") from error
    if not isinstance(done, dict) or done.get("model") != model:
        raise DataError(f"{path}: is damaged: it does not name the model {model}")
    return done


def check_stage(config: TrainConfig, sources: Sources, stage: PretrainingStage) -> None:
    """Read and tokenise a stage's texts, so that a run which cannot get there does not begin.

    Raises:
        AangError: the encoder, the texts or an option cannot be used.
    """
    _, task = assemble_stage(config, sources, stage)
    hold_out(task, config.seed)


def hold_out(task: ObjectiveTask, seed: int) -> tuple[Task, RowSubset]:
    """The rows to train on and those to stop by, drawn with ``seed``.

    Of a stream the first block gives those to stop by, and training begins behind it.

    Raises:
        DataError: there are fewer than two.
    """
    if len(task) < 2:
        raise DataError(f"{task.name}: pre-training needs two texts at least; there is {len(task)}")
    count = min(MOST_HELD_OUT, max(1, round(HELD_OUT_FRACTION * len(task))))
    order = torch.randperm(len(task), generator=torch.Generator().manual_seed(seed))
    held_out = order[:count].sort().values
    if isinstance(task.rows, StreamRows):
        return task, RowSubset(replace(task, rows=task.rows.set_aside()), held_out)
    return RowSubset(task, order[count:].sort().values), RowSubset(task, held_out)


@torch.inference_mode()
def log_likelihood(
    passes: Passes, task: Task, *, seed: int, batch_size: int = 64
) -> Mapping[str, float]:
    """Mean log-likelihood of the targets; the same targets for the same seed."""
    passes.body.eval()
    task.head.eval()
    device = next(passes.body.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    parts: list[RowLosses] = []
    for indices in _by_length(task).split(batch_size):
        batch = task.batch(indices, generator).to(device)
        losses = passes.losses(task, task.head, passes.features(batch), batch)
        parts.append(RowLosses(losses.sums.float(), losses.counts))
    return {METRIC: -float(RowLosses.pool(parts).mean())}


def _by_length(task: Task) -> Tensor:
    lengths = task.lengths
    return torch.arange(len(task)) if lengths is None else torch.argsort(lengths, stable=True)


class _Log:
    """Writes the stage's ``metrics.jsonl``."""

    def __init__(self, folder: RunFolder, stage: str) -> None:
        self._folder = folder
        self._name = f"pretraining/{stage}/metrics.jsonl"

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """A stage has one task, whose weight is one."""

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        self._folder.append(self._name, {"step": step, "held_out": dict(dev), "best": best})
