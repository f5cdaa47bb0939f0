"""Which engine a training has, from its options."""

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
"""One task at a time, all rows together, or whichever suits the device and the other options."""

Called = Callable[..., str]
"""How the user calls an option, given its name and perhaps a value of it."""


@dataclass(frozen=True)
class EngineSettings:
    """Options of the gradient engine.

    Attributes:
        kind: Which engine.
        precision: What forward passes compute in.
        task_clip: Norm that each task's body gradient is clipped to; None for no limit.
        save_memory: The body drops its activations and computes them again in the backward pass.
        compile: The body is compiled.
    """

    kind: EngineKind = "stream"
    precision: Precision = "fp32"
    task_clip: float | None = None
    save_memory: bool = False
    compile: bool = False


def as_option(name: str, value: object = None) -> str:
    """How the command line calls an option.

    >>> as_option("task_clip"), as_option("gradients", "packed")
    ('--task-clip', '--gradients packed')
    """
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def as_argument(name: str, value: object = None) -> str:
    """How Python calls an option.

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
    """Refuse options that no engine supports together.

    Args:
        settings: Options of the engine.
        dev_head: Options of the dev head, which may need what an engine does not have.
        processes: Those that share the training.
        called: How the user calls an option, for the message.

    Raises:
        ConfigError: The packed engine, with an option that it cannot support.
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
        "compile": "looks at every module of the encoder, which {} makes one kernel of",
        "task_clip": "drops each gradient before it is whole, which {} needs",
        "dev_average": "drops each gradient before it is whole, which {} needs",
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
    """The engine that the options ask for; :func:`check_engine` has accepted them.

    On a CPU small passes cost no more than large ones; an accelerator idles in them. So ``auto`` is
    packed on an accelerator and stream elsewhere.

    Args:
        settings: Options of the engine.
        body: On its device.
        dev_head: The head that the dev gradient goes through.
        dev_head_settings: The options that it was chosen by.
        at_once: The most rows in one pass through the body; None for no limit.
        processes: Those that share the training.
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
    """The options in effect that the packed engine does not support, by name."""
    values = {
        "save_memory": settings.save_memory,
        "compile": settings.compile,
        "task_clip": settings.task_clip,
        "dev_average": dev_head.average,
    }
    return [name for name, value in values.items() if value]
