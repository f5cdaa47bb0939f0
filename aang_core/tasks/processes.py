"""The processes that share one training, and how they exchange numbers."""

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed

from aang_core.errors import AangError

MESSAGE_BYTES = 2**25
"""Bytes of gradient in one message: enough to make the latency worthwhile, and too few to need
the memory of a second gradient."""


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
            with _company():
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
        with _company():
            distributed.all_reduce(message, distributed.ReduceOp.MAX)
        return int(message)

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
        (first,) = self.sum([own if self.first else torch.zeros_like(own)])
        return [float(number) for number in first.tolist()]

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

    Raises:
        AangError: they cannot find each other, or the environment does not say how many they are.
    """
    if _number("WORLD_SIZE", 1) == 1:
        return ALONE
    try:
        from accelerate import PartialState
    except ImportError as error:
        raise AangError(
            "several processes need accelerate; pip install 'aang-core[distributed]'"
        ) from error
    try:
        state = PartialState(cpu=device.type == "cpu")
    except (RuntimeError, ValueError) as error:
        raise AangError(
            f"the processes of this training cannot find each other: {error}. MASTER_ADDR, "
            "MASTER_PORT, RANK and WORLD_SIZE say where they are; accelerate launch sets them"
        ) from error
    # If the group is not destroyed, torch's threads outlive it and the interpreter aborts on exit.
    atexit.register(_leave)
    return Processes(state.process_index, state.num_processes)


def local_rank() -> int:
    """Rank of this process among those on the same machine."""
    return _number("LOCAL_RANK", 0)


def _number(name: str, default: int) -> int:
    """What an environment variable says; if it is empty, as if it were not set.

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


def _leave() -> None:
    """Destroy the process group when the program exits."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


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
def _company() -> Iterator[None]:
    """Turn a failed message of torch.distributed into an AangError."""
    try:
        yield
    except RuntimeError as error:
        raise AangError(
            f"another process of this training has died or cannot be reached ({error}). Its own "
            "output says why; aang train --resume continues from the last checkpoint"
        ) from error
