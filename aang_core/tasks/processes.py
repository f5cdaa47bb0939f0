"""The processes that share one training, and how they exchange numbers."""

import atexit
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor, distributed

from aang_core.errors import AangError, ConfigError, SharedError
from aang_core.tasks.launched import launched_processes
from aang_core.tasks.meeting import meet

MESSAGE_BYTES = 2**25
"""Bytes of gradient in one message: enough to make the latency worthwhile, and too few to need
the memory of a second gradient."""

LONGEST_WAIT = timedelta(days=1)
"""How long processes wait for each other. All others wait while the first one scores the model,
writes it and pushes it to the hub, and torch's own limit ends them after 10 minutes (NCCL) or 30.
They do not wait for a process that has died: its connections close, and launchers end the rest."""


class Processes:
    """This process, number ``rank`` of ``size``; with a size of 1 nothing is sent anywhere.

    All processes run the same program with the same draws, so all of them must call every method,
    in the same order.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @property
    def first(self) -> bool:
        """Whether this process writes the files and talks to the user."""
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Sum each tensor over the processes; the result is the same in all of them to the bit.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1 or not tensors:
            return list(tensors)
        summed: list[Tensor] = []
        for bucket in _buckets(tensors):
            message = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with _lost_processes_reported():
                distributed.all_reduce(message)
            parts = message.split([tensor.numel() for tensor in bucket])
            summed += [p.view_as(t).to(t.dtype) for p, t in zip(parts, bucket, strict=True)]
        return summed

    def largest(self, number: int) -> int:
        """The largest of the processes' numbers.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1:
            return number
        message = torch.tensor(number, device=_device())
        with _lost_processes_reported():
            distributed.all_reduce(message, distributed.ReduceOp.MAX)
        return int(message)

    def of_first(self, tensor: Tensor) -> Tensor:
        """The tensor of the first process, in every process; all have it in the same shape.

        The host does not wait for the device.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1:
            return tensor
        (first,) = self.sum([tensor if self.first else torch.zeros_like(tensor)])
        return first

    def agree(self, numbers: Sequence[float]) -> list[float]:
        """The numbers of the first process, in every process.

        Numbers that all processes compute alike may still differ in the last bit between machines.
        This keeps such a difference from leading the processes to different decisions.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1:
            return list(numbers)
        own = torch.tensor(numbers, dtype=torch.float64, device=_device())
        return [float(number) for number in self.of_first(own).tolist()]

    def gather(self, text: str) -> list[str]:
        """The texts that the processes pass, by rank.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1:
            return [text]
        said: list[str] = [""] * self.size
        with _lost_processes_reported():
            distributed.all_gather_object(said, text)
        return said

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Run the block in every process; if it fails in one of them, it fails in all.

        Otherwise the others would wait for the one that failed, on another machine perhaps for
        ever. The processes must exchange nothing within the block.

        Raises:
            SharedError: it failed in another process, or in this one and not in the first; the
                message says in which, on which machine, and why.
        """
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            if self.size == 1:
                raise
            failure = error
        if self.size > 1:
            self._share(failure)

    def _share(self, failure: Exception | None) -> None:
        """Raise an error if a process has failed."""
        own = "" if failure is None else _in_words(failure)
        reasons = self.gather(own)
        failed = [rank for rank, reason in enumerate(reasons) if reason]
        if not failed:
            return
        hosts = self.gather(socket.gethostname())
        if failure is not None and not isinstance(failure, AangError):
            raise failure  # a mistake of ours or of a plug-in, whose traceback is needed
        if failure is not None and self.first and set(reasons) == {own}:
            raise failure
        first = failed[0]
        others = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise SharedError(
            f"process {first} of {self.size}, on {hosts[first]}{others}: {reasons[first]}"
        ) from failure

    def refuse_if_different(self, own: str, differs: Callable[[str, str], str]) -> None:
        """Raise an error in all processes if one says something else than the first.

        Args:
            own: what this process has.
            differs: returns how the second argument, which is what another process has, differs
                from the first one, which is what the first process has.

        Raises:
            SharedError: the message says in which process, on which machine, and how.
        """
        if self.size == 1:
            return
        said = self.gather(own)
        other = next((rank for rank, theirs in enumerate(said) if theirs != said[0]), None)
        if other is None:
            return
        hosts = self.gather(socket.gethostname())
        raise SharedError(
            f"process {other} of {self.size}, on {hosts[other]}: {differs(said[0], said[other])}; "
            f"process 0 runs on {hosts[0]}. All processes of a training have to read the same"
        )

    def wait(self) -> None:
        """Wait until every process has reached this call.

        Raises:
            AangError: another process has died.
        """
        self.largest(0)

    def own(self, costs: Sequence[float]) -> list[list[int]]:
        """Distribute whole pieces of work so that all processes have about as much to do.

        The longest piece goes first, always to the process with the least work: at most 4/3 of the
        best possible (Graham, 1969).

        Args:
            costs: of each piece.

        Returns:
            For each process, the indices of its pieces in ascending order.
        """
        loads = [0.0] * self.size
        shares: list[list[int]] = [[] for _ in range(self.size)]
        for piece in sorted(range(len(costs)), key=lambda i: -costs[i]):
            process = min(range(self.size), key=lambda rank: loads[rank])
            loads[process] += costs[piece]
            shares[process].append(piece)
        return [sorted(share) for share in shares]


ALONE = Processes()
"""The process of a training that runs in one process."""


def processes_of_environment(device: torch.device) -> Processes:
    """The processes that ``accelerate launch`` or ``torchrun`` has started, or this one alone.

    Args:
        device: the device that this process computes on.

    Raises:
        AangError: they cannot find each other, or the environment does not say how many they are.
        ConfigError: they compute on different kinds of devices.
    """
    size = launched_processes()
    if size == 1:
        return ALONE
    try:
        from accelerate import PartialState
    except ImportError as error:
        raise AangError(
            "several processes need accelerate; pip install 'aang-core[distributed]'"
        ) from error
    # The group that exists when this module is imported becomes a default argument of its functions
    # and outlives `_leave`. transformers imports it with its models, which are loaded later.
    import torch.distributed.nn.functional  # noqa: F401

    try:
        # A store that the first process serves ends with it, so it is held until all have met.
        store = meet(device.type)
        state = PartialState(cpu=device.type == "cpu", timeout=LONGEST_WAIT)
        del store
    except (RuntimeError, ValueError) as error:
        raise AangError(
            f"the processes of this training cannot find each other: {error}. MASTER_ADDR, "
            "MASTER_PORT, RANK and WORLD_SIZE say where they are; accelerate launch sets them"
        ) from error
    if state.num_processes != size:
        raise ConfigError(
            f"--device {device.type}: {size} processes cannot exchange numbers on {device.type}; "
            "start one process, or give --device cpu"
        )
    # If the group is not destroyed, torch's threads outlive it and the interpreter aborts on exit.
    atexit.register(_leave)
    return Processes(state.process_index, state.num_processes)


def _leave() -> None:
    """Destroy the process group when the program exits."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _in_words(error: Exception) -> str:
    """What went wrong, for another process."""
    notes = getattr(error, "__notes__", ())
    kind = "" if isinstance(error, AangError) else f"{type(error).__name__}: "
    return "\n".join([f"{kind}{error}", *notes])


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and size + tensor.nbytes > MESSAGE_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    yield bucket


def _device() -> torch.device:
    if distributed.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


@contextmanager
def _lost_processes_reported() -> Iterator[None]:
    """Turn a failed message of torch.distributed into an AangError."""
    try:
        yield
    except RuntimeError as error:
        raise AangError(
            f"another process of this training has died or cannot be reached ({error}). Its own "
            "output says why; aang train --resume continues from the last checkpoint"
        ) from error
