"""Fine-tuning of the end task alone, from the best model that the search has found.

AANG's released code does so after its search (its paper does not mention it), TARTAN calls it
optional: a learning rate of 1e-6, up to ten epochs, stopped after three that are no better on dev.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from aang_core.assembly.assembly import Assembly
from aang_core.assembly.sources import Sources
from aang_core.checked.weighter import CheckedWeighter
from aang_core.config import TrainConfig
from aang_core.gradients import DevHeadSettings, EngineSettings
from aang_core.runs import outcome
from aang_core.runs.log_lines import DevScores
from aang_core.runs.run_files import append_line
from aang_core.runs.schema import FinalFineTuning, Scores
from aang_core.runs.training import base_optimizer, score_rows
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.tasks.weighting import TaskCard
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.precision import in_effect
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.step_rows import RowBudget
from aang_core.training.trainer import Observer, Schedule

NAME = "final-fine-tuning"
"""Its folder in the run, and what its progress is shown under."""

LEARNING_RATE = 1e-6
PATIENCE = 3
"""Epochs without a better dev score after which it stops."""


def fine_tune(
    config: TrainConfig,
    sources: Sources,
    assembly: Assembly,
    folder: RunFolder,
    *,
    observe: Callable[[int], Sequence[Observer]],
    interruption: Interruption,
    processes: Processes,
) -> FinalFineTuning | None:
    """Train the end task alone from where body and head stand, and leave them in the best state.

    That is the state they are in if no epoch is better on dev. An epoch is as many steps as it
    takes to see every training row; ``--batch-size`` rows a step. The learning rate is constant.
    What it draws begins with the run's seed, so that it is the same whenever the run was
    interrupted.

    Args:
        config: The run's options.
        sources: What the run started from.
        assembly: Its model and rows, on the device.
        folder: The run's; checkpoints and ``metrics.jsonl`` go into ``final-fine-tuning``.
        observe: The observers, given the number of steps.
        interruption: Who asks to stop.
        processes: Those that share the training.

    Returns:
        The part of ``result.json``, in the first process; None in the others.

    Raises:
        Interrupted: ``interruption`` asked to stop; what was trained is kept.
    """
    assert config.final_fine_tuning is not None
    assert sources.alone is not None  # it is there for every run with that option
    before = _scores(config, sources, assembly) if processes.first else None
    epoch = math.ceil(len(assembly.end_task) / config.batch_size)
    steps = config.final_fine_tuning * epoch
    torch.manual_seed(config.seed)
    place = Path(NAME)
    checkpointer = Checkpointer(
        folder,
        f"{place}/checkpoints",
        (f"{place}/metrics.jsonl",),
        seconds=config.checkpoint_every,
        interruption=interruption,
        processes=processes,
    )
    trainer = make_trainer(
        assembly.model.body,
        assembly.end_task,
        assembly.meta,
        [],
        CheckedWeighter.make(sources.alone, TaskCard(assembly.end_task.name), [], {}),
        TrainingSettings(
            optimizer=replace(
                base_optimizer(config),
                lr=LEARNING_RATE,
                head_lr=LEARNING_RATE,
                warmup=0.0,
                schedule="constant",
            ),
            schedule=Schedule(steps, epoch, PATIENCE, config.metric),
            rows=RowBudget(config.batch_size, 1, 1, config.micro_batch_size),
            seed=config.seed,
            engine=EngineSettings(precision=in_effect(config.precision)),
            dev_head=DevHeadSettings(kind="end-task"),
            on_nan=config.on_nan,
        ),
        evaluate=lambda: score_rows(assembly, assembly.dev, processes),
        observers=(_Log(folder), *observe(steps)),
        boundary=checkpointer,
        processes=processes,
    )
    checkpointer.load(trainer)
    processes.wait()
    progress = trainer.train()
    interruption.check(trainer.bench.steps)
    # It is the same again if the run dies before it has written what follows.
    checkpointer.drop_all()
    if before is None:
        return None
    return FinalFineTuning(
        epochs=math.ceil(trainer.bench.steps / epoch),
        best_epoch=math.ceil(progress.best_step / epoch),
        kept=progress.best_step > 0,
        before=before,
        after=_scores(config, sources, assembly),
    )


def _scores(config: TrainConfig, sources: Sources, assembly: Assembly) -> Scores:
    """The metric on dev and test; None for test if there is no such data."""
    return outcome.chosen_scores(config, outcome.evaluation(sources, assembly))


class _Log:
    """Writes ``final-fine-tuning/metrics.jsonl``."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """There is one task, whose weight is one."""

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        scores = {"step": step, "dev": dict(dev), "best": best}
        append_line(self._folder, DevScores.model_validate(scores), NAME)
