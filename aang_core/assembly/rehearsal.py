"""Tries an objective's primitives on a few rows before anything is trained."""

import torch
from torch import Tensor

from aang_core.assembly.objective_task import ObjectiveTask
from aang_core.errors import PluginError
from aang_core.tasks.task import RowLosses


def rehearse(task: ObjectiveTask, hidden_size: int) -> None:
    """Run ``task`` on its first and its shortest row, each twice, with random hidden states.

    This finds the mistakes of primitives on the CPU, where reading values is cheap, and before a
    run folder exists. It does not change the draws of the training: it uses its own generator, and
    restores the state of torch's, which dropout draws from.

    Args:
        task: the objective.
        hidden_size: H of the encoder.

    Raises:
        PluginError: a primitive breaks the contract of its stage.
    """
    # The shortest row is the most likely to have no target and nothing to attend to; equal rows are
    # the most likely to be compared with each other.
    rows = torch.stack([torch.tensor(0), task.lengths.argmin()]).unique().repeat(2)
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        batch = task.batch(rows, generator)
        shape = (*batch.inputs["input_ids"].shape, hidden_size)
        dtype = next((p.dtype for p in task.head.parameters()), torch.float32)
        hidden = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        losses = task.losses(task.head, hidden, batch.targets)
        if not task.couples_rows:
            _refuse_coupling(task, losses, hidden)


def _refuse_coupling(task: ObjectiveTask, losses: RowLosses, hidden: Tensor) -> None:
    """Raise PluginError if the first row's loss depends on another row."""
    (gradient,) = torch.autograd.grad(losses.sums[0], hidden, allow_unused=True)
    if gradient is not None and bool(gradient[1:].ne(0).any()):
        raise PluginError(
            f"{task.name}: the loss of a row of output {task.factors['output']} depends on other "
            "rows, which may come in other batches; an output that compares rows with each other "
            "has to say so with the attribute couples_rows = True"
        )
