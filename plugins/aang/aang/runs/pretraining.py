"""Continued pre-training on a single objective (Gururangan et al., 2020), as a stage of a run."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from aang.assembly.assembly import load_model, make_task
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.plan import PretrainingStage
from aang.assembly.source_rows import SourceReader, hold_out_of
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.modeling import TextModel
from aang.runs.encoder_training import (
    ACCURACY,
    METRIC,
    EncoderRows,
    TrainedEncoder,
    encoder_settings,
    train_encoder,
)
from aang.runs.files import ScoresLog, read_part, write_part
from aang.runs.schema import StageResult
from aang.runs.training import During
from aang_core.errors import DataError
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.task import Batch, RowLosses, Task


class RowSubset(Task):
    """Some rows of a task as a task of their own, with the same name and head.

    Args:
        task: the full task.
        rows: int64 indices of its rows.
    """

    def __init__(self, task: Task, rows: Tensor) -> None:
        self.name, self.head, self.factors = task.name, task.head, task.factors
        self._task = task
        self._rows = rows

    @property
    def lengths(self) -> Tensor | None:
        lengths = self._task.lengths
        return None if lengths is None else lengths[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        return self._task.batch(self._rows[rows], generator)

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self._task.losses(head, features, targets)


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
    return EncoderRows(task, *_hold_out(task, sources.config.seed))


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
    place, steps = f"pretraining/{stage.name}", stage.settings.steps
    if (folder.path / place / StageResult.file).is_file():
        return read_part(StageResult, folder.path / place)
    torch.manual_seed(sources.config.seed)
    model = load_model(sources, reader.tokenizer)
    rows = ready(sources, stage, reader, model)
    outcomes: list[StageResult] = []

    def finish(trained: TrainedEncoder) -> None:
        folder.write_folder(
            f"{place}/model", lambda to: model.save_language_model(to, rows.task.head)
        )
        outcomes.append(_outcome(stage, trained, rows))
        write_part(folder, outcomes[0], place)

    train_encoder(
        model.body.to(during.device),
        rows,
        encoder_settings(sources.config, stage.settings),
        folder,
        place,
        alone=sources.plan.alone,
        finish=finish,
        observe=lambda _: (
            ScoresLog(folder, place, "held_out"),
            *during.observe(stage.name, steps, METRIC),
        ),
        interruption=during.interruption,
        processes=during.processes,
    )
    return outcomes[0]


def _outcome(stage: PretrainingStage, trained: TrainedEncoder, rows: EncoderRows) -> StageResult:
    """The stage's part of ``result.json``."""
    note = ""
    if trained.got_worse:
        note = (
            f"pre-training {stage.name} made held-out text less likely: its log-likelihood was "
            f"{trained.before[METRIC]:.4f} and is {trained.after[METRIC]:.4f}; fewer steps or a "
            f"smaller --set {stage.name}.lr may do better"
        )
    return StageResult.without_empty(
        objective=stage.objective.name,
        texts={"train": len(rows.train), "held_out": len(rows.held_out)},
        steps=trained.steps,
        best_step=trained.best_step,
        log_likelihood=trained[METRIC],
        train_seconds=round(trained.seconds, 3),
        body_rows=trained.body_rows,
        model=f"pretraining/{stage.name}/model",
        accuracy=trained[ACCURACY] if ACCURACY in trained.after else None,
        note=note,
    )


def _hold_out(task: ObjectiveTask, seed: int) -> tuple[Task, RowSubset]:
    """Split the rows, by ``seed``, into rows to train on and held-out rows.

    The held-out rows of a stream come from its first block, and training starts after that block.

    Raises:
        DataError: there are fewer than two rows.
    """
    if len(task) < 2:
        raise DataError(f"{task.name}: pre-training needs two texts at least; there is {len(task)}")
    held_out, others = hold_out_of(len(task), seed)
    if isinstance(task.rows, StreamRows):
        return task, RowSubset(replace(task, rows=task.rows.set_aside()), held_out)
    return RowSubset(task, others), RowSubset(task, held_out)
