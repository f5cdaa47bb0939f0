"""Training of an encoder on a single objective, for pre-training and ``prepare-encoder``."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.plan import StageSettings
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.runs.preparation_config import PreparationConfig
from aang.runs.training import base_optimizer, settings_alone, trained_alone
from aang_core.contracts import CheckedOutput
from aang_core.gradients.passes import Passes
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import RowLosses, Task
from aang_core.training.bench import RunTasks
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.evaluation import LOG_LIKELIHOOD
from aang_core.training.setup import TrainingSettings
from aang_core.training.trainer import Schedule, Watching

METRIC = LOG_LIKELIHOOD
"""Mean log-likelihood of the targets in held-out texts, in nats."""
ACCURACY = "accuracy"
"""Share of the targets that the head predicts correctly, for outputs that count hits."""


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


def encoder_settings(
    config: TrainConfig | PreparationConfig, pace: StageSettings | PreparationConfig
) -> TrainingSettings:
    """The settings of encoder training.

    Args:
        config: the options of the whole command.
        pace: steps, rows per step and learning rates: the settings of a stage of pre-training, or
            the options of a preparation.
    """
    steps = sys.maxsize if pace.steps is None else pace.steps
    return settings_alone(
        config,
        replace(base_optimizer(config), lr=pace.lr, head_lr=pace.head_lr),
        # No early stopping: held-out scores choose nothing.
        Schedule(steps, pace.eval_every, sys.maxsize, METRIC, keep_best=False),
        pace.batch_size,
    )


@contextmanager
def trained_encoder(
    body: nn.Module,
    rows: EncoderRows,
    alone: Primitive,
    settings: TrainingSettings,
    checkpointer: Checkpointer,
    *,
    watching: Watching,
    processes: Processes,
) -> Iterator[dict[str, Any]]:
    """Train ``body`` and the objective's head.

    Training continues from the last checkpoint, if there is one. The state of the last step is
    kept, as Gururangan et al. (2020) do; held-out scores are reported but choose nothing.

    Several processes share the rows of a step, and each draws the corruptions of its own share. So
    the number of processes changes what is drawn.

    Args:
        body: the encoder, on its device.
        rows: the objective and its rows.
        alone: the weighter that trains the end task alone; here the objective takes its place.
        settings: how long and how fast, from `encoder_settings`.
        checkpointer: its checkpoints, which are deleted at the end of the block.
        watching: who is told; if its clock has a limit, the learning rates rise and fall over it.
        processes: the processes that share the training.

    Yields:
        What result files say of the training: steps and rows, and each held-out score before and
        after it.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    task = rows.task
    task.head.to(next(body.parameters()).device)
    passes = Passes(body, settings.engine.precision)

    @cache
    def scores(step: int) -> Mapping[str, float]:
        """Held-out scores of the current state, which is that after ``step``."""
        return held_out_scores(passes, rows, seed=settings.seed)

    before = scores(0)
    streams = {task.factors["data"]: task.rows} if isinstance(task.rows, StreamRows) else {}
    with trained_alone(
        body,
        RunTasks(rows.train, rows.held_out, [], streams),
        alone,
        settings,
        checkpointer,
        evaluate=scores,
        watching=watching,
        processes=processes,
    ) as trainer:
        steps = trainer.bench.steps
        after = scores(steps)
        yield {
            "steps": steps,
            "best_step": trainer.progress.best_step,
            "train_seconds": round(trainer.clock.seconds, 3),
            "body_rows": steps * settings.step.rows.end_task,
            **{name: {"before": before[name], "after": after[name]} for name in after},
        }


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
