"""Fine-tuning on the end task alone, from the best model of the search.

AANG's released code does this after its search, though the paper does not mention it, and TARTAN
calls it optional: a learning rate of 1e-6 for up to ten epochs, stopped after three epochs without
a better dev score.
"""

import math
from dataclasses import replace

import torch

from aang.assembly.assembly import Assembly
from aang.runs import outcome
from aang.runs.computing import in_effect
from aang.runs.files import ScoresLog
from aang.runs.schema import DevScores, FinalFineTuning, Scores
from aang.runs.training import During, base_optimizer, score_rows
from aang_core.gradients import DevHeadSettings, EngineSettings
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.weighting import TaskCard
from aang_core.training.bench import RunTasks, StepSettings
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.rows import RowBudget
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.trainer import Schedule, Watching

NAME = "final-fine-tuning"
"""Its folder in the run, and the title of its progress bar."""

LEARNING_RATE = 1e-6
PATIENCE = 3
"""Stop after this many epochs without a better dev score."""


def fine_tune(assembly: Assembly, folder: RunFolder, during: During) -> FinalFineTuning | None:
    """Train body and head on the end task alone, and leave them in the best state.

    If no epoch is better on dev, they keep the state that they have now. An epoch is one pass over
    the training rows, with ``--batch-size`` rows per step. The learning rate is constant. The
    random draws start from the run's seed again, so that an interruption does not change them.

    Args:
        assembly: the options, the model and its rows, on the device.
        folder: the run folder; checkpoints and ``metrics.jsonl`` go into ``final-fine-tuning``.
        during: what it has in common with the other trainings of the run.

    Returns:
        Its part of ``result.json`` in the first process; None without the option and in the others.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    config, processes = assembly.config, during.processes
    if config.final_fine_tuning is None:
        return None
    before = _scores(assembly) if processes.first else None
    epoch = math.ceil(len(assembly.end_task) / config.batch_size)
    steps = config.final_fine_tuning * epoch
    torch.manual_seed(config.seed)
    checkpointer = Checkpointer(
        folder,
        f"{NAME}/checkpoints",
        (f"{NAME}/{DevScores.file}",),
        seconds=config.checkpoint_every,
        interruption=during.interruption,
        processes=processes,
    )
    alone = assembly.sources.plan.alone
    trainer = make_trainer(
        assembly.model.body,
        RunTasks(assembly.end_task, assembly.meta, []),
        CheckedWeighter.make(alone, TaskCard(assembly.end_task.name), [], {}),
        TrainingSettings(
            optimizer=replace(
                base_optimizer(config),
                lr=LEARNING_RATE,
                head_lr=LEARNING_RATE,
                warmup=0.0,
                schedule="constant",
            ),
            schedule=Schedule(steps, epoch, PATIENCE, config.metric),
            step=StepSettings(
                RowBudget(config.batch_size, 1, 1, config.micro_batch_size), on_nan=config.on_nan
            ),
            seed=config.seed,
            engine=EngineSettings(precision=in_effect(config.precision)),
            dev_head=DevHeadSettings(kind="end-task"),
        ),
        # In fp32: at this rate an epoch changes less than half precision would round.
        evaluate=lambda: score_rows(assembly, assembly.dev, processes),
        watching=Watching(
            (ScoresLog(folder, NAME), *during.observe(NAME, steps, config.metric)), checkpointer
        ),
        processes=processes,
    )
    checkpointer.load(trainer)
    processes.wait()
    progress = trainer.train()
    during.interruption.check(trainer.bench.steps)
    # If the process dies before the model is written, the same training is done again.
    checkpointer.drop_all()
    if before is None:
        return None
    return FinalFineTuning(
        epochs=math.ceil(trainer.bench.steps / epoch),
        best_epoch=math.ceil(progress.best_step / epoch),
        kept=progress.best_step > 0,
        before=before,
        after=_scores(assembly),
        train_seconds=round(trainer.clock.seconds, 3),
        body_rows=trainer.bench.steps * config.batch_size,
    )


def _scores(assembly: Assembly) -> Scores:
    """The metric on dev and on test; None for test if there is no test data."""
    evaluated, _ = outcome.evaluation(assembly)
    return outcome.chosen_scores(assembly.config, evaluated)
