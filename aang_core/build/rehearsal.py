"""Two rows through an objective's primitives before anything is trained."""

import torch

from aang_core.build.objective_task import ObjectiveTask


def rehearse(task: ObjectiveTask, hidden_size: int) -> None:
    """Run ``task`` on its first and its shortest row, with made-up hidden states.

    What a primitive does wrong shows here, on the CPU, where values cost nothing to look at, and
    before a run folder is made. No draw of the training is touched: the rows have a generator of
    their own, and torch's, which dropout draws from, is put back.

    hidden_size: H, of the encoder.

    Raises:
        PluginError: a primitive does not keep the contract of its stage.
    """
    # The shortest row is the likeliest to have no target and nothing to see.
    rows = torch.stack([torch.tensor(0), task.lengths.argmin()]).unique()
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        batch = task.batch(rows, generator)
        shape = (*batch.inputs["input_ids"].shape, hidden_size)
        dtype = next((p.dtype for p in task.head.parameters()), torch.float32)
        hidden = torch.randn(shape, generator=generator).to(dtype)
        task.losses(task.head, hidden.requires_grad_(), batch.targets)
