"""Continued pre-training on a single objective (Gururangan et al., 2020), as a stage of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aang.assembly.assembly import load_model, stage_task
from aang.assembly.chain_stage import PretrainingStage
from aang.assembly.held_out import hold_out_of
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.modeling import TextModel
from aang.runs.encoder_settings import encoder_settings
from aang.runs.encoder_training import ACCURACY, METRIC, EncoderRows, TrainedEncoder, train_encoder
from aang.runs.run_files import read_part, write_part
from aang.runs.schema import BeforeAfter, StageResult, StageTexts
from aang_core.errors import DataError
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import RowSubset, Task
from aang_core.training.interruption import Interruption
from aang_core.training.trainer import Observer


@dataclass(frozen=True)
class ReadyStage:
    """A stage that is ready to begin.

    Attributes:
        model: the encoder.
        rows: the objective, with its rows to train on and its held-out rows.
        random: the state of torch's generator when both had been made; dropout draws from it.
    """

    model: TextModel
    rows: EncoderRows
    random: Tensor


def ready(
    config: TrainConfig,
    sources: Sources,
    stage: PretrainingStage,
    reader: SourceReader,
    model: TextModel,
) -> ReadyStage:
    """Read a stage's texts and try its primitives.

    A tenth of the texts, at most 512, is held out.

    Raises:
        DataError: the objective's data has fewer than two texts.
        AangError: the texts or an option cannot be used.
    """
    task = stage_task(reader, sources, model, stage)
    train, held_out = hold_out(task, config.seed)
    return ReadyStage(model, EncoderRows(task, train, held_out), torch.get_rng_state())


def try_stages(
    config: TrainConfig, sources: Sources, reader: SourceReader, model: TextModel
) -> ReadyStage | None:
    """Try all stages on the first encoder of the run, so that no stage fails half-way.

    Returns:
        The first stage, which trains this encoder; None if the run has no stages.

    Raises:
        AangError: like :func:`ready`.
    """
    tried = [ready(config, sources, stage, reader, model) for stage in sources.pretraining]
    return tried[0] if tried else None


def pretrain(
    config: TrainConfig,
    sources: Sources,
    stage: PretrainingStage,
    folder: RunFolder,
    *,
    reader: SourceReader,
    first: ReadyStage | None,
    device: torch.device,
    observers: Sequence[Observer] = (),
    interruption: Interruption,
    processes: Processes = ALONE,
) -> StageResult:
    """Train the encoder of ``sources`` on the stage's objective and save it under ``folder``.

    All steps are trained, and the state of the last one is saved as an ordinary masked-LM folder,
    ``model``. The log-likelihood of held-out texts, before and after, shows the effect.

    A stage that has finished, which ``stage.json`` shows, is not trained again. An interrupted one
    continues from its last checkpoint.

    Args:
        config: the run's options.
        sources: the run's sources, with the encoder that the stage starts from.
        stage: the objective and its settings.
        folder: the run folder.
        reader: reads the run's sources.
        first: the stage as :func:`try_stages` returned it, if it is the first; later stages load
            their encoder.
        device: the device to train on.
        observers: the observers of the training.
        interruption: where a request to stop arrives.
        processes: the processes that share the training.

    Returns:
        The stage's part of ``result.json``.

    Raises:
        DataError: ``stage.json`` is damaged.
        Interrupted: ``interruption`` asked to stop; a checkpoint has been written.
    """
    place = f"pretraining/{stage.name}"
    if (folder.path / place / StageResult.file).is_file():
        return finished_stage(folder.path / place, f"{place}/model")
    torch.manual_seed(config.seed)
    if first is None:
        model = load_model(config, sources, reader.tokenizer)
        first = ready(config, sources, stage, reader, model)
    model, rows = first.model, first.rows
    torch.set_rng_state(first.random)
    body, head = model.body.to(device), rows.task.head
    outcomes: list[StageResult] = []

    def finish(trained: TrainedEncoder) -> None:
        folder.write_folder(f"{place}/model", lambda to: model.save_language_model(to, head))
        outcomes.append(_outcome(stage, trained, len(rows.train), len(rows.held_out)))
        write_part(folder, outcomes[0], place)

    assert sources.alone is not None
    train_encoder(
        body,
        rows,
        encoder_settings(config, stage.settings),
        folder,
        place,
        alone=sources.alone,
        finish=finish,
        observe=lambda _: (HeldOutLog(folder, f"{place}/metrics.jsonl"), *observers),
        interruption=interruption,
        processes=processes,
    )
    return outcomes[0]


def _outcome(
    stage: PretrainingStage, trained: TrainedEncoder, train: int, held_out: int
) -> StageResult:
    """The stage's part of ``result.json``."""
    given: dict[str, Any] = {}
    if ACCURACY in trained.after:
        given["accuracy"] = BeforeAfter(**trained[ACCURACY])
    if trained.got_worse:
        given["note"] = (
            f"pre-training {stage.name} made held-out text less likely: its log-likelihood was "
            f"{trained.before[METRIC]:.4f} and is {trained.after[METRIC]:.4f}; fewer steps or a "
            f"smaller --set {stage.name}.lr may do better"
        )
    return StageResult(
        objective=stage.objective.name,
        texts=StageTexts(train=train, held_out=held_out),
        steps=trained.steps,
        best_step=trained.best_step,
        log_likelihood=BeforeAfter(**trained[METRIC]),
        train_seconds=round(trained.seconds, 3),
        body_rows=trained.body_rows,
        model=f"pretraining/{stage.name}/model",
        **given,
    )


def finished_stage(place: Path, model: str) -> StageResult:
    """Read ``stage.json`` of a finished stage.

    Args:
        place: the folder of the stage.
        model: the folder of its model, relative to the run folder.

    Raises:
        DataError: it is damaged, or names another model folder.
    """
    done = read_part(StageResult, place)
    if done.model != model:
        raise DataError(
            f"{place / StageResult.file}: is damaged: it does not name the model {model}"
        )
    return done


def hold_out(task: ObjectiveTask, seed: int) -> tuple[Task, RowSubset]:
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


class HeldOutLog:
    """Writes held-out scores and training losses to a file, one line of JSON per evaluation.

    Args:
        folder: the run folder.
        name: the name of the file.
    """

    def __init__(self, folder: RunFolder, name: str) -> None:
        self._folder = folder
        self._name = name

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Does nothing: there is one task, whose weight is one."""

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        line = {"step": step, "held_out": dict(dev), "best": best}
        self._folder.append(self._name, line | ({"losses": dict(losses)} if losses else {}))
