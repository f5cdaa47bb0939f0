"""Training of an encoder on a single objective: a stage of a run, and ``prepare-encoder``.

A stage continues the pre-training of its encoder, as in Gururangan et al. (2020).
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from aang.assembly.assembly import load_model, make_task
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.plan import PretrainingStage, StageSettings
from aang.assembly.source_rows import SourceReader, hold_out_of
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.modeling import TextModel
from aang.runs.files import ScoresLog, read_part, write_part
from aang.runs.schema import StageResult
from aang.runs.training import (
    During,
    base_optimizer,
    checkpoints_in,
    settings_alone,
    trained_alone,
)
from aang.task_types.metrics import LOG_LIKELIHOOD
from aang_core.errors import DataError
from aang_core.fitting import TrainingSettings
from aang_core.gradients.passes import Passes
from aang_core.plugins.primitive import Primitive
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import RowLosses
from aang_core.training.bench import RunTasks
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.trainer import Schedule, Watching

if TYPE_CHECKING:
    from aang_plugin_prepare.config import PreparationConfig

ACCURACY = "accuracy"
"""Share of the targets that the head predicts correctly, for outputs that count hits."""

EVALUATED_AT_ONCE = 64
"""Held-out rows in a pass through the encoder."""


@dataclass(frozen=True)
class EncoderRows:
    """An objective on the rows that an encoder is trained on, and on those that are held out."""

    train: ObjectiveTask
    held_out: ObjectiveTask


def encoder_settings(
    config: "TrainConfig | PreparationConfig", pace: "StageSettings | PreparationConfig"
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
        Schedule(steps, pace.eval_every, sys.maxsize, LOG_LIKELIHOOD, keep_best=False),
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
        watching: the observers; if its clock has a limit, the learning rates rise and fall over it.
        processes: the processes that share the training.

    Yields:
        The training's fields in result files: steps, rows, and each held-out score before and after
        it.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    task = rows.train
    task.head.to(next(body.parameters()).device)
    passes = Passes(body, settings.engine.precision)

    @cache
    def scores(step: int) -> Mapping[str, float]:
        """Held-out scores of the current state, the one after ``step``."""
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
def held_out_scores(passes: Passes, rows: EncoderRows, *, seed: int) -> Mapping[str, float]:
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
    for indices in torch.argsort(task.lengths, stable=True).split(EVALUATED_AT_ONCE):
        batch = task.batch(indices, generator).to(device)
        features = passes.features(batch)
        losses = passes.losses(task, task.head, features, batch)
        parts.append(RowLosses(losses.sums.float(), losses.counts))
        with passes.autocast():
            right = task.output.hits(task.head, features, batch.targets)
        if right is not None:
            hits.append(right)
    pooled = RowLosses.pool(parts)
    found = {LOG_LIKELIHOOD: -float(pooled.mean())}
    if hits:
        found[ACCURACY] = float(torch.cat(hits).sum() / pooled.counts.sum().clamp(min=1))
    return found


def ready(
    sources: Sources, stage: PretrainingStage, reader: SourceReader, model: TextModel
) -> EncoderRows:
    """Read a stage's texts and try its primitives.

    A tenth of the texts, at most 512, is held out.

    Raises:
        DataError: the objective's data has fewer than two texts.
        AangError: the texts or an option cannot be used.
    """
    rows = reader.source(stage.objective.data, stage.settings.batch_size, {})
    task = make_task(rows, stage.objective, model, sources.config.set)
    return _hold_out(task, sources.config.seed)


def pretrain(
    sources: Sources,
    stage: PretrainingStage,
    reader: SourceReader,
    folder: RunFolder,
    during: During,
) -> StageResult:
    """Train the encoder of ``sources`` on the stage's objective and save it under ``folder``.

    All steps are trained, and the state of the last one is saved as an ordinary masked-LM folder,
    ``model``. The log-likelihood of held-out texts, before and after, shows the effect.

    A stage that has finished, which ``stage.json`` shows, is not trained again. An interrupted one
    continues from its last checkpoint.

    Args:
        sources: the run's sources, with the encoder that the stage starts from.
        stage: the objective and its settings.
        reader: reads the run's sources.
        folder: the run folder.
        during: what it has in common with the other trainings of the run.

    Returns:
        The stage's part of ``result.json``.

    Raises:
        DataError: ``stage.json`` is damaged.
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    place = f"pretraining/{stage.name}"
    if (folder.path / place / StageResult.file).is_file():
        return read_part(StageResult, folder.path / place)
    torch.manual_seed(sources.config.seed)
    model = load_model(sources, reader.tokenizer, stage.name)
    rows = ready(sources, stage, reader, model)
    observers = during.observe(stage.name, stage.settings.steps, LOG_LIKELIHOOD)
    with trained_encoder(
        model.body.to(during.device),
        rows,
        sources.plan.alone,
        encoder_settings(sources.config, stage.settings),
        checkpoints_in(folder, place, sources.config, during),
        watching=Watching((ScoresLog(folder, place, "held_out"), *observers)),
        processes=during.processes,
    ) as trained:
        folder.write_folder(
            f"{place}/model", lambda to: model.save_language_model(to, rows.train.head)
        )
        result = StageResult.without_empty(
            objective=stage.objective.name,
            texts={"train": len(rows.train), "held_out": len(rows.held_out)},
            **trained,
            model=f"{place}/model",
            note=_got_worse(stage.name, **trained[LOG_LIKELIHOOD]),
        )
        write_part(folder, result, place)
    return result


def _got_worse(stage: str, before: float, after: float) -> str:
    """A note if the stage made held-out text less likely; otherwise empty."""
    if after >= before:
        return ""
    return (
        f"pre-training {stage} made held-out text less likely: its log-likelihood was "
        f"{before:.4f} and is {after:.4f}; fewer steps or a smaller --set {stage}.lr may do better"
    )


def _hold_out(task: ObjectiveTask, seed: int) -> EncoderRows:
    """Split the rows, by ``seed``, into rows to train on and held-out rows.

    The held-out texts of a stream come from its first block; training starts after that block and
    skips them in later passes.

    Raises:
        DataError: there are fewer than two rows.
    """
    if len(task) < 2:
        raise DataError(f"{task.name}: pre-training needs two texts at least; there is {len(task)}")
    if isinstance(task.rows, StreamRows):
        aside = task.rows.set_aside(lambda count: hold_out_of(count, seed)[0])
        return EncoderRows(task, replace(task, rows=aside))
    held_out, others = hold_out_of(len(task), seed)
    return EncoderRows(replace(task, part=others), replace(task, part=held_out))
