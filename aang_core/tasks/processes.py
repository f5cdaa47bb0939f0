"""The processes that share one training, and what they tell each other."""

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed

from aang_core.errors import AangError

MESSAGE_BYTES = 2**25
"""How much of a gradient goes into one message: enough to be worth the wait, and little enough to
be no second gradient in memory."""


class Processes:
    """This process among ``size``, of which it is number ``rank``; alone it tells nobody anything.

    All of them run the same program with the same draws, so every method must be called by all of
    them in the same order.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and talks to the user."""
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Each tensor summed over the processes; the same bits in every one of them.

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
        """The largest of the numbers that the processes have.

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
        """The numbers of the first process, in all of them.

        What is computed by each of them alike may differ in the last bit between machines, and must
        not lead them different ways.

        Raises:
            AangError: another process has died.
        """
        if self.size == 1:
            return list(numbers)
        own = torch.tensor(numbers, dtype=torch.float64, device=_device())
        (first,) = self.sum([own if self.first else torch.zeros_like(own)])
        return [float(number) for number in first.tolist()]

    def wait(self) -> None:
        """Until all of them have come here.

        Raises:
            AangError: another process has died.
        """
        self.largest(0)

    def own(self, costs: Sequence[float]) -> list[list[int]]:
        """Share pieces of work, whole, so that the processes have about as much to do each.

        The longest piece first, always to the process that has least: at most 4/3 of the best
        possible (Graham, 1969). Returns, by process, the numbers of its pieces in their order.
        """
        loads = [0.0] * self.size
        shares: list[list[int]] = [[] for _ in range(self.size)]
        for piece in sorted(range(len(costs)), key=lambda i: -costs[i]):
            process = min(range(self.size), key=lambda rank: loads[rank])
            loads[process] += costs[piece]
            shares[process].append(piece)
        return [sorted(share) for share in shares]


ALONE = Processes()
"""The one process of a training that nobody shares."""


def processes_of_environment(device: torch.device) -> Processes:
    """The processes that ``accelerate launch`` or ``torchrun`` has started; one without them.

    Raises:
        AangError: they cannot find each other.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
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
    # torch's own threads outlive a group that nobody ends; the interpreter then aborts as it exits.
    atexit.register(_leave)
    return Processes(state.process_index, state.num_processes)


def local_rank() -> int:
    """Which of the processes on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def _leave() -> None:
    """End the process group as the program exits."""
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
    """Messages of torch.distributed, told in the project's words when one does not arrive."""
    try:
        yield
    except RuntimeError as error:
        raise AangError(
            f"another process of this training has died or cannot be reached ({error}). Its own "
            "last words say why; aang train --resume goes on from the last checkpoint"
        ) from error
