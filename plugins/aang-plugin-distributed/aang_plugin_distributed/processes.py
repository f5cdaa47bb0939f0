"""How the processes of one training find each other, and how they exchange numbers."""

import atexit
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor, distributed

# The group that exists when this module is imported becomes a default argument of its functions and
# outlives the group. transformers imports it with its models, which are loaded later.
import torch.distributed.nn.functional  # isort: skip
from torch.distributed.rendezvous import rendezvous  # isort: skip

from aang_core import AangError, ConfigError, DataError, Processes, SharedError, Task
from aang_core.gradients import DevHead, EngineSettings, GradientEngine
from aang_plugin_distributed.engine import DistributedEngine

MESSAGE_BYTES = 2**25
"""Bytes of gradient in one message: enough to make the latency worthwhile, and too few to need
the memory of a second gradient."""

LONGEST_WAIT = timedelta(days=1)
"""How long processes wait for each other. All others wait while the first one scores the model,
writes it and pushes it to the hub, and torch's own limit ends them after 10 minutes (NCCL) or 30.
They do not wait for a process that has died: its connections close, and launchers end the rest."""

_ROWS = 8
"""Rows of each task that are compared. Data drawn without a seed differ in the first one."""

_REFUSED = "refused: "
"""Begins the message of a process that cannot take part; no kind of device has this name."""


class Several(Processes):
    """Processes that exchange tensors and texts through torch.distributed."""

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        summed: list[Tensor] = []
        for bucket in _buckets(tensors):
            message = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with _lost_processes_reported():
                distributed.all_reduce(message)
            parts = message.split([tensor.numel() for tensor in bucket])
            summed += [p.view_as(t).to(t.dtype) for p, t in zip(parts, bucket, strict=True)]
        return summed

    def largest(self, number: int) -> int:
        message = torch.tensor(number, device=_device())
        with _lost_processes_reported():
            distributed.all_reduce(message, distributed.ReduceOp.MAX)
        return int(message)

    def of_first(self, tensor: Tensor) -> Tensor:
        (first,) = self.sum([tensor if self.first else torch.zeros_like(tensor)])
        return first

    def agree(self, numbers: Sequence[float]) -> list[float]:
        own = torch.tensor(numbers, dtype=torch.float64, device=_device())
        return [float(number) for number in self.of_first(own).tolist()]

    def gather(self, text: str) -> list[str]:
        """The texts that the processes pass, by rank."""
        said: list[str] = [""] * self.size
        with _lost_processes_reported():
            distributed.all_gather_object(said, text)
        return said

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        own = "" if failure is None else _in_words(failure)
        reasons = self.gather(own)
        failed = [rank for rank, reason in enumerate(reasons) if reason]
        if not failed:
            return
        hosts = self.gather(socket.gethostname())
        if failure is not None and not isinstance(failure, AangError):
            raise failure  # a bug of ours or of a plug-in, whose traceback is needed
        if failure is not None and self.first and set(reasons) == {own}:
            raise failure
        first = failed[0]
        others = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise SharedError(
            f"process {first} of {self.size}, on {hosts[first]}{others}: {reasons[first]}"
        ) from failure

    def refuse_if_different(self, own: str, differs: Callable[[str, str], str]) -> None:
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
        self.largest(0)

    @torch.no_grad()
    def start_alike(self, modules: Sequence[torch.nn.Module], tasks: Sequence[Task]) -> None:
        parameters = [parameter for module in modules for parameter in module.parameters()]
        device = parameters[0].device
        for task in tasks:
            self._require_same_rows(task, device)
        buffers = [buffer for module in modules for buffer in module.buffers()]
        for tensor in dict.fromkeys([*parameters, *buffers]):
            # Not every backend can sum booleans.
            sent = tensor.byte() if tensor.dtype == torch.bool else tensor
            tensor.copy_(self.of_first(sent.detach()))

    def _require_same_rows(self, task: Task, device: torch.device) -> None:
        """Compare the first rows; numbers only up to rounding, as machines may round differently.

        Raises:
            SharedError: they differ between processes.
        """
        numbers = torch.arange(min(len(task), _ROWS))
        batch = task.batch(numbers, torch.Generator().manual_seed(0)).to(device)
        given = [*batch.inputs.items(), *batch.targets.items()]
        shapes = ", ".join(f"{key} {list(tensor.shape)}" for key, tensor in given)
        self.refuse_if_different(
            f"task {task.name!r} has {len(task)} rows, the first with {shapes}",
            lambda first, other: f"{other}; in process 0, {first}",
        )
        # Every process must take part in every exchange, so the tensors are compared afterwards.
        pairs = [(tensor.double(), self.of_first(tensor.double())) for _, tensor in given]
        same = all(torch.allclose(*pair, rtol=1e-2, atol=1e-4, equal_nan=True) for pair in pairs)
        with self.all_or_none():
            if not same:
                raise DataError(
                    f"the rows of task {task.name!r} are not those of process 0: read them from "
                    "the same files, or draw them with the same seed in every process"
                )

    def make_engine(
        self, body: torch.nn.Module, dev_head: DevHead, settings: EngineSettings
    ) -> GradientEngine:
        return DistributedEngine(body, dev_head, settings, self)


def join(device: torch.device | AangError) -> Processes:
    """Meet the processes that a launcher has started.

    Args:
        device: the device that this process computes on; or the error why it cannot take part.

    Raises:
        ConfigError: they compute on different kinds of devices, or one cannot take part.
        AangError: they cannot find each other.
    """
    if not distributed.is_initialized():
        try:
            _meet(device)
        except (RuntimeError, ValueError) as error:
            raise AangError(
                f"the processes of this training cannot find each other: {error}. MASTER_ADDR, "
                "MASTER_PORT, RANK and WORLD_SIZE say where they are; torchrun and accelerate "
                "launch set them"
            ) from error
    return Several(distributed.get_rank(), distributed.get_world_size())


def _meet(device: torch.device | AangError) -> None:
    """Join the other processes, once all of them have said what kind of device they compute on.

    Processes on different kinds of devices would wait for each other's messages for hours, and so
    would all if one never came.
    """
    store, rank, size = next(rendezvous("env://"))
    kind = f"{_REFUSED}{device}" if isinstance(device, AangError) else device.type
    store.set(f"aang/said/{rank}", kind)
    said = [store.get(f"aang/said/{other}").decode() for other in range(size)]
    # Process 0 may serve the store, so it leaves last. The others' last message gets no answer that
    # they could miss.
    if rank != 0:
        store.set(f"aang/has-read/{rank}", "")
    else:
        store.wait([f"aang/has-read/{other}" for other in range(1, size)])
    if isinstance(device, AangError):
        raise device
    refused = next((other for other, what in enumerate(said) if what.startswith(_REFUSED)), None)
    if refused is not None:
        raise ConfigError(
            f"process {refused} of {size} cannot take part: {said[refused].removeprefix(_REFUSED)}"
        )
    if len(set(said)) > 1:
        on = ", ".join(f"{other} on {what}" for other, what in enumerate(said))
        raise ConfigError(
            f"--device: the processes of this training compute on different kinds of devices "
            f"({on}); give --device cpu, or start them only where there is {max(said)}"
        )
    backends = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}
    if device.type not in backends:
        raise ConfigError(
            f"--device {device.type}: {size} processes cannot exchange numbers on {device.type}; "
            "start one process, or give --device cpu"
        )
    if device.type != "cpu":
        torch.accelerator.set_device_index(device)
    distributed.init_process_group(
        backends[device.type], store=store, rank=rank, world_size=size, timeout=LONGEST_WAIT
    )
    # If the group is not destroyed, torch's threads outlive it and the interpreter aborts on exit.
    atexit.register(_leave)


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
    if bucket:
        yield bucket


def _device() -> torch.device:
    """The device of numbers that the processes exchange."""
    if distributed.get_backend() == "gloo":
        return torch.device("cpu")
    return torch.accelerator.current_accelerator() or torch.device("cpu")


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
