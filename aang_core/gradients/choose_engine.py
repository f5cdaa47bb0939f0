"""Choosing a training's gradient engine from its options."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from aang_core.errors import ConfigError
from aang_core.gradients.choose_dev_head import DevHeadSettings
from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.distributed import DistributedEngine
from aang_core.gradients.engine import GradientEngine
from aang_core.gradients.packed import PackedEngine
from aang_core.gradients.passes import Precision
from aang_core.gradients.stream import StreamEngine
from aang_core.gradients.task_clip import TaskClip
from aang_core.tasks.processes import ALONE, Processes

EngineKind = Literal["auto", "stream", "packed"]
"""One task at a time, all rows together, or whichever of them suits device and options."""

Called = Callable[..., str]
"""Maps an option's name, and optionally its value, to the user's spelling of it."""


@dataclass(frozen=True)
class EngineSettings:
    """Options of the gradient engine.

    Attributes:
        kind: which engine.
        precision: precision of forward passes.
        task_clip: norm that each task's body gradient is clipped to; None for no limit.
        save_memory: whether the body recomputes its activations in the backward pass instead of
            keeping them.
        compile: whether the body is compiled.
    """

    kind: EngineKind = "stream"
    precision: Precision = "fp32"
    task_clip: float | None = None
    save_memory: bool = False
    compile: bool = False


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
        ConfigError: the packed engine is asked for, with an option that it does not support.
    """
    if settings.kind != "packed":
        return
    packed = called("gradients", "packed")
    if processes.size > 1:
        raise ConfigError(
            f"{packed}: runs all tasks together, which several processes cannot share; leave it "
            "out or give stream"
        )
    reasons = {
        "save_memory": "needs the activations of all layers, which {} drops",
        "compile": "looks at every module of the encoder, which {} fuses into one kernel",
        "task_clip": "drops each gradient before it is whole, but {} needs all of it",
        "dev_average": "drops each gradient before it is whole, but {} needs all of it",
    }
    for option in _without_packed(settings, dev_head):
        reason = reasons[option].format(called(option))
        raise ConfigError(f"{packed}: {reason}; leave one of them out")


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

    Small passes leave an accelerator idle and cost nothing extra on a CPU. So ``auto`` is packed on
    an accelerator and stream elsewhere.

    Args:
        settings: options of the engine, which `check_engine` has accepted.
        body: the module that all tasks share, on its device.
        dev_head: the head that the dev gradient goes through.
        dev_head_settings: the options of that head.
        at_once: most rows in one pass through the body; None for no limit.
        processes: the processes that share the training.
    """
    blocked = _without_packed(settings, dev_head_settings or DevHeadSettings())
    suited = next(body.parameters()).device.type != "cpu" and not blocked and processes.size == 1
    if settings.kind == "packed" or (settings.kind == "auto" and suited):
        return PackedEngine(body, dev_head, settings.precision, max_rows=at_once)
    clip = TaskClip(settings.task_clip)
    if processes.size > 1:
        return DistributedEngine(body, dev_head, settings.precision, processes, clip=clip)
    return StreamEngine(
        body, dev_head, settings.precision, hold_end_task=at_once is None, clip=clip
    )


def _without_packed(settings: EngineSettings, dev_head: DevHeadSettings) -> list[str]:
    """Names of the options in use that the packed engine does not support."""
    values = {
        "save_memory": settings.save_memory,
        "compile": settings.compile,
        "task_clip": settings.task_clip,
        "dev_average": dev_head.average,
    }
    return [name for name, value in values.items() if value]
