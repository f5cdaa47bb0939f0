"""The same model and the same rows in every process before training starts."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Task
from aang_core.training.buffers import buffers_of

_ROWS = 8
"""Rows of each task that are compared. Data drawn without a seed differ in the first one."""


@torch.no_grad()
def copy_from_first(modules: Sequence[nn.Module], processes: Processes) -> None:
    """Give every process the parameters and buffers of the first process's modules.

    Modules that are initialised without a seed differ between processes, and processes exchange
    gradients, never parameters, so they would stay different. PyTorch's DistributedDataParallel
    copies them for the same reason.

    Args:
        modules: the modules, in the same order in every process.
        processes: the processes that share the training.
    """
    if processes.size == 1:
        return
    parameters = [parameter for module in modules for parameter in module.parameters()]
    buffers = [buffer for _, buffer in buffers_of(modules)]
    for tensor in dict.fromkeys([*parameters, *buffers]):
        # Not every backend can sum booleans.
        sent = tensor.byte() if tensor.dtype == torch.bool else tensor
        tensor.copy_(processes.of_first(sent.detach()))


def require_same_rows(tasks: Iterable[Task], processes: Processes, device: torch.device) -> None:
    """Raise an error unless the tasks have the same rows in every process.

    Only the first rows of each task are compared, and numbers only up to rounding, because machines
    may round differently.

    Args:
        tasks: the tasks, in the same order in every process.
        processes: the processes that share the training.
        device: where the processes exchange tensors.

    Raises:
        SharedError: the rows differ; the message names the task and the process.
    """
    if processes.size == 1:
        return
    for task in tasks:
        numbers = torch.arange(min(len(task), _ROWS))
        batch = task.batch(numbers, torch.Generator().manual_seed(0)).to(device)
        given = [*batch.inputs.items(), *batch.targets.items()]
        shapes = ", ".join(f"{key} {list(tensor.shape)}" for key, tensor in given)
        processes.refuse_if_different(
            f"task {task.name!r} has {len(task)} rows, the first with {shapes}",
            lambda first, other: f"{other}; in process 0, {first}",
        )
        # Every process must take part in every exchange, so the tensors are compared afterwards.
        firsts = [processes.of_first(tensor.double()) for _, tensor in given]
        pairs = zip([tensor.double() for _, tensor in given], firsts, strict=True)
        same = all(_close(own, first) for own, first in pairs)
        with processes.all_or_none():
            if not same:
                raise DataError(
                    f"the rows of task {task.name!r} are not those of process 0: read them from "
                    "the same files, or draw them with the same seed in every process"
                )


def _close(own: Tensor, first: Tensor) -> bool:
    return torch.allclose(own, first, rtol=1e-2, atol=1e-4, equal_nan=True)
