"""Gradient engines: their interface, their options, and the choice among them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from torch import Tensor, nn

from aang_core.errors import ConfigError
from aang_core.gradients.dev_head import DevHead, DevHeadSettings
from aang_core.gradients.ledger import GradientStatistics, TaskClip
from aang_core.gradients.passes import LossScale, Precision
from aang_core.gradients.segments import Segment
from aang_core.gradients.stream import StreamEngine
from aang_core.plugins.primitive import TargetEntry
from aang_core.plugins.registry import Registry
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch

ON_ACCELERATORS = "packed"
"""The engine that ``auto`` takes on an accelerator if a plug-in brings it."""

Called = Callable[..., str]
"""Maps an option's name, and optionally its value, to the user's spelling of it."""


class GradientEngine(Protocol):
    """Computes the gradient of a step and, in the same passes, each task's statistics against v.

    Attributes:
        splits_rows: whether a task's rows should come in several batches if that saves padding. An
            engine that runs the rows of all tasks together gains nothing from it.
        processes: the processes that share a step. Rows of the end task and of dev should come in
            at least as many batches.
        dev_head: the head that the dev gradient goes through.
        scale: the loss scale of the engine's `Passes`. Every gradient of a loss that passes through
            ``Passes.losses`` or `rider_loss` goes through ``scale.off(gradient)``.
        losses: scalars on the device, for the tasks of the last step in the order of `members_of`
            over the auxiliary segments and, last, the end task's.
    """

    splits_rows: bool
    processes: Processes
    dev_head: DevHead
    scale: LossScale
    losses: Sequence[Tensor]

    def limit_rows(self, rows: int) -> None:
        """From now on, run at most ``rows`` rows of all tasks in one pass, to save memory.

        The rows of a task with more than that must come in several batches.
        """
        ...

    def step(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """Leave Σ coefficient · ∇loss in ``.grad`` of every parameter of the body and the heads.

        ``.grad`` is empty when it is called. A task with coefficient 0 is measured but leaves
        nothing there, not even zeros, which an optimiser would take for a gradient. Given ``dev``,
        the engine fits the dev head to the end task's rows and passes the gradient of the dev loss
        through it, with respect to the body's trained parameters, to ``dev_head.smoothed``, which
        returns v. With or without ``dev``, ``dev_head.observe`` then receives features and batches
        of every segment that has ``remember``.

        Args:
            end: the end task's rows; tasks in ``riders`` train on the same rows in the same pass.
            auxiliaries: the auxiliary tasks' rows.
            dev: rows of the end task's dev set to measure against; None for a step without v, which
                fits no dev head.
            norms: measure ‖g_k‖ without dev rows, too.

        Returns:
            The statistics; None without dev rows and ``norms``.
        """
        ...


@dataclass(frozen=True)
class EngineSettings:
    """Options of the gradient engine.

    Attributes:
        kind: ``stream``, ``auto``, or the name of an engine that a plug-in brings.
        precision: precision of forward passes.
        task_clip: norm that each task's body gradient is clipped to; None for no limit.
        save_memory: whether the body recomputes its activations in the backward pass instead of
            keeping them.
        compile: whether the body is compiled.
        plugin: the plug-in's engine that ``kind`` selects; None for the stream engine.
    """

    kind: str = "stream"
    precision: Precision = "fp32"
    task_clip: float | None = None
    save_memory: bool = False
    compile: bool = False
    plugin: TargetEntry | None = None


class EngineFactory(Protocol):
    """What ``aang_register_engines`` registers: a subclass of an engine, or a function.

    Attributes:
        cannot: for each option that the engine does not support, the reason, in which ``{}`` stands
            for the option: ``save_memory``, ``compile``, ``task_clip`` or ``dev_average``.
    """

    cannot: Mapping[str, str]

    def __call__(
        self, body: nn.Module, dev_head: DevHead, settings: EngineSettings, at_once: int | None
    ) -> GradientEngine:
        """Make the engine.

        Args:
            body: the module that all tasks share, on its device.
            dev_head: the head that the dev gradient goes through.
            settings: the options of the engine.
            at_once: most rows in one pass through the body; None for no limit.
        """
        ...


def find_engine(kind: str, registry: Registry) -> TargetEntry | None:
    """The plug-in's engine that ``kind`` selects; None for the stream engine.

    Raises:
        UnknownNameError: no plug-in brings an engine of that name; the message says what does.
        AmbiguousNameError: several do.
    """
    if kind == "stream" or (kind == "auto" and ON_ACCELERATORS not in registry.engines):
        return None
    return registry.engines.find(ON_ACCELERATORS if kind == "auto" else kind)


def as_option(name: str, value: object = None) -> str:
    """An option as it is written on the command line.

    Examples:
        >>> as_option("task_clip"), as_option("gradients", "packed")
        ('--task-clip', '--gradients packed')
    """
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def as_argument(name: str, value: object = None) -> str:
    """An option as it is written in Python.

    Examples:
        >>> as_argument("task_clip"), as_argument("gradients", "packed")
        ('task_clip', "gradients='packed'")
    """
    return name if value is None else f"{name}={value!r}"


def check_engine(
    settings: EngineSettings,
    dev_head: DevHeadSettings,
    processes: Processes = ALONE,
    called: Called = as_option,
) -> None:
    """Check that an engine supports all options together.

    Args:
        settings: options of the engine.
        dev_head: options of the dev head, which not every engine supports.
        processes: the processes that share the training.
        called: how the user spells an option, for the message.

    Raises:
        ConfigError: a plug-in's engine is chosen with an option that it does not support.
    """
    if settings.kind == "auto" or settings.plugin is None:
        return
    chosen = called("gradients", settings.kind)
    if processes.size > 1:
        raise ConfigError(
            f"{chosen}: runs in one process; leave it out, or give stream, which several share"
        )
    for option, reason in _unsupported(_factory(settings.plugin), settings, dev_head).items():
        raise ConfigError(f"{chosen}: {reason.format(called(option))}; leave one of them out")


def choose_engine(
    settings: EngineSettings,
    body: nn.Module,
    dev_head: DevHead,
    *,
    dev_head_settings: DevHeadSettings | None = None,
    at_once: int | None = None,
    processes: Processes = ALONE,
) -> GradientEngine:
    """Make the engine that the options ask for.

    Small passes leave an accelerator idle and cost nothing extra on a CPU. So ``auto`` takes a
    plug-in's engine only on an accelerator, and stream elsewhere.

    Args:
        settings: options of the engine, which `check_engine` has accepted.
        body: the module that all tasks share, on its device.
        dev_head: the head that the dev gradient goes through.
        dev_head_settings: the options of that head.
        at_once: most rows in one pass through the body; None for no limit.
        processes: the processes that share the training.
    """
    alone = processes.size == 1
    accelerated = next(body.parameters()).device.type != "cpu"
    if settings.plugin is not None and alone and (accelerated or settings.kind != "auto"):
        factory = _factory(settings.plugin)
        if not _unsupported(factory, settings, dev_head_settings or DevHeadSettings()):
            return factory(body, dev_head, settings, at_once)
    if not alone:
        engine: GradientEngine = processes.make_engine(body, dev_head, settings)
        return engine
    clip = TaskClip(settings.task_clip)
    return StreamEngine(
        body, dev_head, settings.precision, hold_end_task=at_once is None, clip=clip
    )


def _factory(plugin: TargetEntry) -> EngineFactory:
    return cast(EngineFactory, plugin.load())


def _unsupported(
    factory: EngineFactory, settings: EngineSettings, dev_head: DevHeadSettings
) -> dict[str, str]:
    """The options in use that an engine does not support, and why."""
    in_use = {
        "save_memory": settings.save_memory,
        "compile": settings.compile,
        "task_clip": settings.task_clip is not None,
        "dev_average": bool(dev_head.average),
    }
    return {name: reason for name, reason in factory.cannot.items() if in_use.get(name)}
