"""A few rows through an objective's primitives before anything is trained."""

import torch
from torch import Tensor

from aang_core.assembly.objective_task import ObjectiveTask
from aang_core.errors import PluginError
from aang_core.tasks.task import RowLosses


def rehearse(task: ObjectiveTask, hidden_size: int) -> None:
    """Run ``task`` on its first and its shortest row, each twice, with made-up hidden states.

    What a primitive does wrong shows here, on the CPU, where values cost nothing to look at, and
    before a run folder is made. No draw of the training is touched: the rows have a generator of
    their own, and torch's, which dropout draws from, is restored.

    hidden_size: H, of the encoder.

    Raises:
        PluginError: a primitive does not keep the contract of its stage.
    """
    # The shortest row is the likeliest to have no target and nothing to see; rows that are alike
    # are the likeliest to be compared with each other.
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
    """Raise PluginError where the first row's loss depends on another row."""
    (gradient,) = torch.autograd.grad(losses.sums[0], hidden, allow_unused=True)
    if gradient is not None and bool(gradient[1:].ne(0).any()):
        raise PluginError(
            f"{task.name}: the loss of a row of output {task.factors['output']} depends on other "
            "rows, which may come in other batches; an output that compares rows with each other "
            "has to say so with the attribute couples_rows = True"
        )
