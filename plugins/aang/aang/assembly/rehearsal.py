"""Tries an objective's primitives on a few rows before anything is trained."""

import torch
from torch import Tensor

from aang.assembly.objective_task import ObjectiveTask
from aang_core.errors import PluginError
from aang_core.objectives.stages import CorruptedRows
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
        _refuse_lost_specials(task, rows, batch.origin)
        shape = (*batch.inputs["input_ids"].shape, hidden_size)
        dtype = next((p.dtype for p in task.head.parameters()), torch.float32)
        hidden = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        losses = task.losses(task.head, hidden, batch.targets)
        if not task.couples_rows:
            _refuse_coupling(task, losses, hidden)


def _refuse_lost_specials(task: ObjectiveTask, numbers: Tensor, rows: CorruptedRows) -> None:
    """Raise PluginError if the transform has removed, changed or moved special tokens."""
    padded = task.rows.rows(numbers.repeat(task.views))
    special = padded.real & ~padded.ordinary
    for row, origin in enumerate(rows.origin):
        left = rows.real[row] & ~rows.ordinary[row] & (origin >= 0)
        wanted = special[row].nonzero().flatten()
        if (
            not torch.equal(origin[left], wanted)
            or not torch.equal(rows.corrupted[row][left], padded.ids[row][wanted])
            or bool(special[row, 0] and origin[0] != 0)
        ):
            raise PluginError(
                f"{task.name}: transform {task.factors['transform']} removes, changes or moves "
                "special tokens of a row; all of them have to stay, in their order, and the first "
                "one at the beginning"
            )


def _refuse_coupling(task: ObjectiveTask, losses: RowLosses, hidden: Tensor) -> None:
    """Raise PluginError if the first row's loss depends on another row."""
    (gradient,) = torch.autograd.grad(losses.sums[0], hidden, allow_unused=True)
    if gradient is not None and bool(gradient[1:].ne(0).any()):
        raise PluginError(
            f"{task.name}: the loss of a row of output {task.factors['output']} depends on other "
            "rows, which may come in other batches; an output that compares rows with each other "
            "has to say so with the attribute couples_rows = True"
        )
