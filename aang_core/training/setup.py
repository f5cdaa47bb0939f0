"""The one place that puts engine, dev head, optimiser, workbench and trainer together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from aang_core.errors import ConfigError
from aang_core.gradients import DevHeadSettings, EngineSettings, Passes
from aang_core.gradients.dev_head import choose_dev_head
from aang_core.gradients.engine import Called, as_option, check_engine, choose_engine
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.weighting import Weighter, require_several_draws, require_whole_round
from aang_core.training.bench import RunTasks, StepSettings, TrainingBench
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.trainer import Schedule, Trainer, Watching


def can_train(device: torch.device) -> bool:
    """Whether a training can run on the device. Models of a run predict on every device.

    Apple's MPS has no float64, in which gradient signals are summed.
    """
    return device.type != "mps"


def check_trains(device: torch.device) -> None:
    """Refuse a device that cannot train.

    Raises:
        ConfigError: it cannot.
    """
    if not can_train(device):
        raise ConfigError(
            f"the device {device} can predict but not train, because it lacks float64; train on cpu"
        )


@dataclass(frozen=True)
class TrainingSettings:
    """The options of a training, whoever starts it.

    Attributes:
        optimizer: optimiser, learning rates and clipping.
        schedule: steps and evaluations.
        step: what a step consists of.
        seed: of every draw of the training loop.
        engine: how gradients are computed.
        dev_head: how the dev head is fitted.
        called: how the user spells an option, for messages.
    """

    optimizer: OptimizerSettings
    schedule: Schedule
    step: StepSettings
    seed: int
    engine: EngineSettings = field(default_factory=EngineSettings)
    dev_head: DevHeadSettings = field(default_factory=DevHeadSettings)
    called: Called = as_option


def make_trainer(
    body: nn.Module,
    tasks: RunTasks,
    weighter: Weighter,
    settings: TrainingSettings,
    *,
    evaluate: Callable[[], Mapping[str, float]],
    score: Callable[[int | None], float] | None = None,
    watching: Watching | None = None,
    processes: Processes = ALONE,
) -> Trainer:
    """Build a trainer.

    Args:
        body: the module that all tasks share, on its device, to which all heads are moved.
        tasks: the tasks.
        weighter: a weighter for these tasks, already checked.
        settings: the options.
        evaluate: returns the dev scores of the current model.
        score: the dev metric over a number of dev rows, for weighters that ask for it.
        watching: what is told of rounds and evaluations, saves, and ends training in time; if its
            clock has a limit, the learning rates follow it.
        processes: the processes that share the training.

    Returns:
        The trainer, ready to train.

    Raises:
        ConfigError: the options contradict each other, or do not suit the weighter's rounds; or
            nothing can train on the body's device.
    """
    device = next(body.parameters()).device
    check_trains(device)
    for head in tasks.heads:
        head.to(device)
    check_engine(settings.engine, settings.dev_head, processes, settings.called)
    draws = settings.step.draws_per_step
    require_several_draws(weighter, draws, settings.called("draws_per_step", draws))
    require_whole_round(weighter, settings.schedule.steps)
    watching = watching or Watching()
    generator = torch.Generator().manual_seed(settings.seed)
    dev_head = choose_dev_head(
        settings.dev_head,
        Passes(body, settings.engine.precision),
        generator,
        tasks.end_task.head_reads,
    )
    engine = choose_engine(
        *(settings.engine, body, dev_head),
        dev_head_settings=settings.dev_head,
        at_once=settings.step.rows.at_once,
        processes=processes,
    )
    clock = watching.clock
    share = None if clock.limit is None else lambda: clock.share
    steps = settings.schedule.steps
    bench = TrainingBench(
        *(body, tasks, engine),
        Optimization(body, tasks.heads, settings.optimizer, steps, share),
        settings.step,
        generator=generator,
        score=score,
        normalised=weighter.normalised,
    )
    return Trainer(
        *(bench, weighter, settings.schedule),
        evaluate=evaluate,
        seed=settings.seed,
        watching=watching,
    )
