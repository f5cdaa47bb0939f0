"""Continued pre-training on one objective alone (Gururangan et al., 2020), as a stage of a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from aang_core.assembly.assembly import assemble_stage
from aang_core.assembly.chain_stage import PretrainingStage
from aang_core.assembly.held_out import hold_out_of
from aang_core.assembly.objective_task import ObjectiveTask
from aang_core.assembly.sources import Sources
from aang_core.assembly.stream_rows import StreamRows
from aang_core.config import TrainConfig
from aang_core.errors import DataError
from aang_core.runs.encoder_training import (
    ACCURACY,
    METRIC,
    EncoderRows,
    EncoderTraining,
    TrainedEncoder,
    train_encoder,
)
from aang_core.runs.training import base_optimizer
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import RowSubset, Task
from aang_core.training.interruption import Interruption
from aang_core.training.precision import in_effect
from aang_core.training.trainer import Observer


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

    A tenth of the texts, at most 512, is held out: their log-likelihood before and after says what
    the stage did. All its steps are trained, and the state of the last one is saved, as an ordinary
    masked-LM folder ``model``.

    A stage that has finished, as ``stage.json`` there says, is not trained again; one that was
    interrupted goes on from its last checkpoint.

    Returns the stage's part of ``result.json``.

    Raises:
        DataError: the objective's data has fewer than two texts.
        Interrupted: ``interruption`` asked to stop; what was trained is kept.
    """
    place = f"pretraining/{stage.name}"
    finished = folder.path / place / "stage.json"
    if finished.is_file():
        return _finished_stage(finished, f"{place}/model")
    model, task = assemble_stage(config, sources, stage)
    body, head = model.body.to(device), task.head.to(device)
    train, held_out = hold_out(task, config.seed)
    outcome: dict[str, Any] = {}

    def finish(trained: TrainedEncoder) -> None:
        folder.write_folder(f"{place}/model", lambda to: model.save_language_model(to, head))
        outcome.update(_outcome(stage, trained, len(train), len(held_out)))
        folder.write_json(f"{place}/stage.json", outcome)

    assert sources.alone is not None
    train_encoder(
        body,
        EncoderRows(task, train, held_out),
        _settings(config, stage),
        folder,
        place,
        alone=sources.alone,
        finish=finish,
        observe=lambda _: (HeldOutLog(folder, f"{place}/metrics.jsonl"), *observers),
        interruption=interruption,
        processes=processes,
    )
    return outcome


def _settings(config: TrainConfig, stage: PretrainingStage) -> EncoderTraining:
    settings = stage.settings
    return EncoderTraining(
        optimizer=replace(base_optimizer(config), lr=settings.lr, head_lr=settings.head_lr),
        steps=settings.steps,
        seconds=None,
        eval_every=settings.eval_every,
        batch_size=settings.batch_size,
        micro_batch_size=config.micro_batch_size,
        precision=in_effect(config.precision),
        seed=config.seed,
        on_nan=config.on_nan,
        checkpoint_every=config.checkpoint_every,
    )


def _outcome(
    stage: PretrainingStage, trained: TrainedEncoder, train: int, held_out: int
) -> dict[str, Any]:
    """The stage's part of ``result.json``."""
    outcome = {
        "objective": stage.objective.name,
        "texts": {"train": train, "held_out": held_out},
        "steps": trained.steps,
        "best_step": trained.best_step,
        METRIC: trained[METRIC],
        "train_seconds": round(trained.seconds, 3),
        "model": f"pretraining/{stage.name}/model",
    }
    if ACCURACY in trained.after:
        outcome[ACCURACY] = trained[ACCURACY]
    if trained.got_worse:
        outcome["note"] = (
            f"pre-training {stage.name} made held-out text less likely: its log-likelihood was "
            f"{trained.before[METRIC]:.4f} and is {trained.after[METRIC]:.4f}; fewer steps or a "
            f"smaller --set {stage.name}.lr may do better"
        )
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
    """The rows to train on and those to judge by, drawn with ``seed``.

    Of a stream the first block gives those to judge by, and training begins behind it.

    Raises:
        DataError: there are fewer than two.
    """
    if len(task) < 2:
        raise DataError(f"{task.name}: pre-training needs two texts at least; there is {len(task)}")
    held_out, others = hold_out_of(len(task), seed)
    if isinstance(task.rows, StreamRows):
        return task, RowSubset(replace(task, rows=task.rows.set_aside()), held_out)
    return RowSubset(task, others), RowSubset(task, held_out)


class HeldOutLog:
    """Writes what held-out texts say into a file of lines.

    name: of the file in the run's folder.
    """

    def __init__(self, folder: RunFolder, name: str) -> None:
        self._folder = folder
        self._name = name

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """There is one task, whose weight is one."""

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        self._folder.append(self._name, {"step": step, "held_out": dict(dev), "best": best})
