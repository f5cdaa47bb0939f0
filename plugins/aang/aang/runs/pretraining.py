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
from aang.runs.encoder_training import METRIC, EncoderRows, encoder_settings, trained_encoder
from aang.runs.files import ScoresLog, read_part, write_part
from aang.runs.schema import StageResult
from aang.runs.training import During, checkpoints_in
from aang_core.errors import DataError
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.training.trainer import Watching


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
    place = f"pretraining/{stage.name}"
    if (folder.path / place / StageResult.file).is_file():
        return read_part(StageResult, folder.path / place)
    torch.manual_seed(sources.config.seed)
    model = load_model(sources, reader.tokenizer)
    rows = ready(sources, stage, reader, model)
    observers = during.observe(stage.name, stage.settings.steps, METRIC)
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
            f"{place}/model", lambda to: model.save_language_model(to, rows.task.head)
        )
        result = StageResult.model_validate(
            {
                "objective": stage.objective.name,
                "texts": {"train": len(rows.train), "held_out": len(rows.held_out)},
                **trained,
                "model": f"{place}/model",
                **_got_worse(stage.name, **trained[METRIC]),
            }
        )
        write_part(folder, result, place)
    return result


def _got_worse(stage: str, before: float, after: float) -> dict[str, str]:
    """The note of a stage after which held-out text is less likely."""
    if after >= before:
        return {}
    return {
        "note": f"pre-training {stage} made held-out text less likely: its log-likelihood was "
        f"{before:.4f} and is {after:.4f}; fewer steps or a smaller --set {stage}.lr may do better"
    }


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
