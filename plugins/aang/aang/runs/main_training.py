"""The main training of a run, from the assembly to the saved model and its scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import yaml
from pydantic import ValidationError

from aang.assembly.assembly import Assembly
from aang.assembly.labelled_tasks import end_task_columns
from aang.assembly.sources import Sources
from aang.config import TrainConfig, with_absolute_paths
from aang.runs import outcome
from aang.runs.cost import CostLog
from aang.runs.final_fine_tuning import NAME as FINAL_FINE_TUNING
from aang.runs.final_fine_tuning import fine_tune
from aang.runs.log_lines import Cost, DevScores, Round
from aang.runs.run_files import append_line, what_is_wrong, write_part
from aang.runs.schema import Result
from aang.runs.tracking import Tracker
from aang.runs.training import build_trainer
from aang_core.errors import PluginError
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.trainer import Observer

Observe = Callable[[str, int, str], Sequence[Observer]]
"""Makes the observers of one training, given its name, its number of steps and its metric.

The name is that of a stage of pre-training, ``final-fine-tuning``, or empty for the main training.
"""


def unobserved(stage: str, steps: int, metric: str) -> Sequence[Observer]:
    """No observers."""
    return ()


@dataclass(frozen=True)
class During:
    """What all trainings of a run have in common.

    Attributes:
        device: the device that they compute on.
        observe: makes their observers.
        interruption: where a request to stop arrives.
        processes: the processes that share them.
    """

    device: torch.device
    observe: Observe
    interruption: Interruption
    processes: Processes


def train_and_evaluate(
    config: TrainConfig, sources: Sources, assembly: Assembly, folder: RunFolder, during: During
) -> Result | None:
    """Train from the last checkpoint, if there is one, then save and evaluate the model.

    Returns:
        The result without pre-training in the first process; None in the others.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    processes, interruption = during.processes, during.interruption

    cost = CostLog(folder, assembly.model.body, processes, compiled=config.compile)
    tracked = config.log and processes.first
    trackers = [Tracker(config.log, folder.path, reusable(config))] if tracked else []
    checkpointer = Checkpointer(
        folder,
        "checkpoints",
        (Round.file, DevScores.file, Cost.file),
        seconds=config.checkpoint_every,
        interruption=interruption,
        processes=processes,
    )
    trainer = build_trainer(
        config,
        assembly,
        during.device,
        (
            _Log(folder, config.weighter),
            cost,
            *trackers,
            *during.observe("", config.steps, config.metric),
        ),
        checkpointer,
        processes,
    )
    checkpointer.load(trainer)
    if processes.first:
        cost.go_on()
    processes.wait()
    progress = trainer.train()
    for tracker in trackers:
        tracker.close()
    checkpointer.save(trainer)
    interruption.check(trainer.bench.steps)
    seconds, body_rows = cost.seconds, cost.rows()
    tuned = None
    if config.final_fine_tuning is not None:
        tuned = fine_tune(
            config,
            sources,
            assembly,
            folder,
            observe=lambda steps: during.observe(FINAL_FINE_TUNING, steps, config.metric),
            interruption=interruption,
            processes=processes,
        )
    if not processes.first:
        return None
    evaluated, task_type = outcome.evaluation(config, sources, assembly)
    write_part(folder, evaluated)
    task_type.finish(assembly.model.classifier.model)
    pairs = end_task_columns(config).text_pair is not None
    folder.write_folder(
        "model", lambda to: assembly.model.save(to, config.max_length, reads_pairs=pairs)
    )
    adapters = assembly.model.adapters
    if adapters is not None:
        head = assembly.model.classifier
        folder.write_folder("adapter", lambda to: adapters.save(to, head))
    checkpointer.drop_older()
    took = outcome.Took(
        steps=trainer.bench.steps,
        skipped=trainer.bench.numbers.skipped,
        seconds=round(seconds, 3),
        body_rows=body_rows,
        memory_bytes=outcome.peak_memory_bytes(during.device),
        processes=processes.size,
    )
    return outcome.result(config, sources, assembly, evaluated, progress.best_step, took, tuned)


def reusable(config: TrainConfig) -> str:
    """The resolved options in YAML, to be used again from any folder.

    Without the run folder, which another run cannot use.
    """
    whole = with_absolute_paths(config)
    return yaml.safe_dump(whole.model_dump(mode="json", exclude={"out"}))


class _Log:
    """Writes ``metrics.jsonl`` and ``weights.jsonl``."""

    def __init__(self, folder: RunFolder, weighter: str) -> None:
        self._folder = folder
        self._weighter = weighter

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        try:
            line = Round.model_validate(record)
        except ValidationError as error:
            raise PluginError(
                f"weighter {self._weighter}: its record does not fit weights.jsonl: "
                f"{what_is_wrong(error)}"
            ) from error
        append_line(self._folder, line)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        append_line(self._folder, DevScores.of(step, dev, best, losses))
