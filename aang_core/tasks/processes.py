"""The processes that share one training: one alone, or several that a plug-in brings."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aang_core.errors import AangError, ConfigError, UnknownNameError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from aang_core.tasks.task import Task


class Processes:
    """This process, number ``rank`` of ``size``. One process alone exchanges nothing.

    All processes run the same program with the same draws, so all of them must call every method,
    in the same order. The hook ``aang_join_processes`` returns a subclass for several, whose
    methods raise AangError if another process has died.

    Examples:
        >>> from aang_core import Processes
        >>> Processes().first, Processes().largest(3)
        (True, 3)
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @property
    def first(self) -> bool:
        """Whether this process writes the files and talks to the user."""
        return self.rank == 0

    def sum(self, tensors: "Sequence[Tensor]") -> "list[Tensor]":
        """Sum each tensor over the processes; the result is the same in all, bit for bit."""
        return list(tensors)

    def largest(self, number: int) -> int:
        """The largest of the processes' numbers."""
        return number

    def of_first(self, tensor: "Tensor") -> "Tensor":
        """The tensor of the first process, in every process; all must pass one of the same shape.

        The host does not wait for the device.
        """
        return tensor

    def agree(self, numbers: Sequence[float]) -> list[float]:
        """The numbers of the first process, in every process.

        Numbers that all processes compute alike may still differ in the last bit between machines.
        This keeps such a difference from leading the processes to different decisions.
        """
        return list(numbers)

    def gather(self, text: str) -> list[str]:
        """The texts that the processes pass, by rank."""
        return [text]

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Run the block in every process; if it fails in one of them, it fails in all.

        Otherwise the others would wait for the one that failed, on another machine perhaps for
        ever. The processes must exchange nothing within the block.

        Raises:
            SharedError: it failed in another process, or in this one and not in the first; the
                message says in which, on which machine, and why.
        """
        yield

    def refuse_if_different(self, own: str, differs: Callable[[str, str], str]) -> None:
        """Raise an error in all processes if one's text differs from the first one's.

        Args:
            own: the text of this process.
            differs: returns how another process's text, the second argument, differs from the first
                process's, the first argument.

        Raises:
            SharedError: the message says in which process, on which machine, and how.
        """

    def wait(self) -> None:
        """Wait until every process has reached this call."""

    def start_alike(self, modules: "Sequence[nn.Module]", tasks: "Sequence[Task]") -> None:
        """Give all processes the first one's modules, and refuse tasks whose rows differ.

        Processes exchange gradients, never parameters, so modules that were initialised without a
        seed would stay different.

        Args:
            modules: the modules, in the same order in every process, on their device.
            tasks: the tasks, in the same order in every process.

        Raises:
            SharedError: the rows differ; the message names the task and the process.
        """

    def make_engine(self, body: Any, dev_head: Any, settings: Any) -> Any:
        """Make the gradient engine that shares a step between several processes.

        Args:
            body: the module that all tasks share.
            dev_head: the head that the dev gradient goes through.
            settings: :class:`~aang_core.gradients.EngineSettings`.
        """
        raise NotImplementedError("one process needs no engine of its own")


ALONE = Processes()
"""The process of a training that runs in one process."""


def processes_of_environment(device: "torch.device | AangError") -> Processes:
    """The processes that ``accelerate launch`` or ``torchrun`` has started, or this one alone.

    Args:
        device: the device that this process computes on; or the error why it cannot take part,
            which the other processes then raise.

    Raises:
        AangError: they cannot find each other, or the environment does not say how many they are.
        ConfigError: they compute on different kinds of devices, or no plug-in lets several share a
            training.
    """
    if launched_processes() == 1:
        return ALONE
    from aang_core.plugins import load_plugins

    try:
        hook = load_plugins().registry.hooks.find("aang_join_processes")
    except UnknownNameError as error:
        raise ConfigError(
            f"{launched_processes()} processes cannot share a training: {error}"
        ) from error
    joined: Processes = hook.call(device=device)
    return joined


def is_first() -> bool:
    """Whether this is the first process of a training, which speaks for all, or its only one."""
    return (os.environ.get("RANK") or "0") == "0"


def launched_processes() -> int:
    """How many processes a launcher has started for this training."""
    return _number("WORLD_SIZE", 1)


def local_processes() -> int:
    """How many processes of this training are on the same machine, as far as the launcher says."""
    return _number("LOCAL_WORLD_SIZE", 1)


def local_rank() -> int:
    """Rank of this process among those on the same machine."""
    return _number("LOCAL_RANK", 0)


def _number(name: str, default: int) -> int:
    """The number in an environment variable; ``default`` if it is empty or not set.

    Raises:
        AangError: it is not a whole number.
    """
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdecimal()) or len(value) > 9:
        raise AangError(
            f"{name}={value!r}: is not a whole number; torchrun and accelerate launch set it. "
            f"Without them, unset {name}"
        )
    return int(value)
