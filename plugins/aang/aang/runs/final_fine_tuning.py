"""Fine-tuning on the end task alone, from the best model of the search.

AANG's released code does this after its search, though the paper does not mention it, and TARTAN
calls it optional: a learning rate of 1e-6 for up to ten epochs, stopped after three epochs without
a better dev score.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from aang.assembly.assembly import Assembly
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.runs import outcome
from aang.runs.log_lines import DevScores
from aang.runs.run_files import append_line
from aang.runs.schema import FinalFineTuning, Scores
from aang.runs.training import base_optimizer, score_rows
from aang_core.checked.weighter import CheckedWeighter
from aang_core.gradients import DevHeadSettings, EngineSettings
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
"""Its folder in the run, and the title of its progress bar."""

LEARNING_RATE = 1e-6
PATIENCE = 3
"""Stop after this many epochs without a better dev score."""


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
    """Train body and head on the end task alone, and leave them in the best state.

    If no epoch is better on dev, they keep the state that they have now. An epoch is one pass over
    the training rows, with ``--batch-size`` rows per step. The learning rate is constant. The
    random draws start from the run's seed again, so that an interruption does not change them.

    Args:
        config: the run's options.
        sources: the sources of the run.
        assembly: its model and rows, on the device.
        folder: the run folder; checkpoints and ``metrics.jsonl`` go into ``final-fine-tuning``.
        observe: makes the observers, given the number of steps.
        interruption: where a request to stop arrives.
        processes: the processes that share the training.

    Returns:
        Its part of ``result.json`` in the first process; None in the others.

    Raises:
        Interrupted: ``interruption`` asked to stop; a checkpoint has been written.
    """
    assert config.final_fine_tuning is not None
    assert sources.alone is not None  # every run with this option has it
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
        # In fp32: at this rate an epoch changes less than half precision would round.
        evaluate=lambda: score_rows(assembly, assembly.dev, processes, metric=config.metric),
        observers=(_Log(folder), *observe(steps)),
        boundary=checkpointer,
        processes=processes,
    )
    checkpointer.load(trainer)
    processes.wait()
    progress = trainer.train()
    interruption.check(trainer.bench.steps)
    # If the process dies before the model is written, the same training is done again.
    checkpointer.drop_all()
    if before is None:
        return None
    return FinalFineTuning(
        epochs=math.ceil(trainer.bench.steps / epoch),
        best_epoch=math.ceil(progress.best_step / epoch),
        kept=progress.best_step > 0,
        before=before,
        after=_scores(config, sources, assembly),
        train_seconds=round(trainer.clock.seconds, 3),
        body_rows=trainer.bench.steps * config.batch_size,
    )


def _scores(config: TrainConfig, sources: Sources, assembly: Assembly) -> Scores:
    """The metric on dev and on test; None for test if there is no test data."""
    evaluated, _ = outcome.evaluation(config, sources, assembly)
    return outcome.chosen_scores(config, evaluated)


class _Log:
    """Writes ``final-fine-tuning/metrics.jsonl``."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Does nothing: there is one task, whose weight is one."""

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        append_line(self._folder, DevScores.of(step, dev, best, losses), NAME)
