"""A dev head fitted to convergence: logistic regression, its penalty chosen on held-out rows."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import AangError, Batch, Task
from aang_core.gradients import DevHead, DevHeadSettings, Passes

PENALTIES = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
"""λ in mean loss + λ/2 ‖W‖², for features scaled to a mean square of one; in descending order,
because each fit starts from the previous one."""

_HELD_OUT = 4
"""Every fourth of the different rows is held out to choose the penalty."""

_NUMBERS = "/numbers"
"""Remembered rows have their numbers among their targets, always on the CPU."""


class LinearHead(nn.Module):
    """Features ``[B, F]``, centred and scaled, through one linear layer to logits ``[B, C]``."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor, classes: int) -> None:
        super().__init__()
        # Not nn.Linear, whose initialisation draws from torch's generator.
        self.weight = nn.Parameter(mean.new_zeros(classes, len(mean)))
        self.bias = nn.Parameter(mean.new_zeros(classes))
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @classmethod
    def of(cls, features: Tensor, classes: int) -> "LinearHead":
        """A head of zeros that centres features ``[N, F]`` and scales their mean square to one."""
        mean = features.mean(dim=0)
        square = (features - mean).square().sum(dim=1).mean()
        scale = square.clamp(min=torch.finfo(features.dtype).tiny).rsqrt()
        return cls(mean, scale, classes)

    def forward(self, features: Tensor) -> Tensor:
        return functional.linear((features - self.mean) * self.scale, self.weight, self.bias)


class _Kept(nn.Module):
    """Selects the part of features ``[B, ...]`` that the head reads, as ``[B, F]``."""

    def __init__(self, keep: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._keep = keep

    def forward(self, features: Tensor) -> Tensor:
        return self._keep(features).flatten(1)


class LogisticDevHead(DevHead):
    """A linear head that minimises the end task's loss on its rows plus an L2 penalty.

    It replaces a head of the end task's shape that is ten AdamW steps away from random weights. It
    minimises the end task's own loss with L-BFGS from zero. For classification, this is multinomial
    logistic regression with an L2 penalty on weights and biases, which is convex; nothing is drawn
    at random, and the same rows give the same head. The penalty is the one of `PENALTIES` that has
    the lowest loss on a quarter of the rows after a fit to the others; the head is then fitted to
    all rows. It suits a CPU: on an accelerator its line search waits for the device.

    Args:
        keep: selects the part of features ``[B, ...]`` that the head reads; by default all.
        iterations: maximum number of L-BFGS iterations for each penalty.
    """

    def __init__(
        self,
        keep: Callable[[Tensor], Tensor] = lambda features: features,
        *,
        iterations: int = 50,
    ) -> None:
        self.iterations = iterations
        self._keep = keep

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """See `DevHead.fit`.

        Raises:
            AangError: features differ in size, or targets do not have one entry per row.
        """
        kept = [self._keep(f).flatten(1) for f in features]
        if len({f.shape[1] for f in kept}) > 1 or not all(map(_by_row, batches)):
            raise AangError(
                "logistic regression needs features of one size and one target per row, which this "
                "end task does not have; fit the dev head by adamw"
            )
        classes = _classes(end_task.head, features[0][:1])
        seen = torch.cat(kept)
        targets = {
            key: torch.cat([batch.targets[key] for batch in batches])
            for key in batches[0].targets
            if key != _NUMBERS
        }
        held_out = _places(batches).to(seen.device) % _HELD_OUT == _HELD_OUT - 1
        if not held_out.any():
            chosen = PENALTIES[0]
        else:
            chosen = self._best_penalty(end_task, seen, targets, held_out, classes)
        head = LinearHead.of(seen, classes)
        self._minimise(end_task, head, seen, targets, chosen)
        return nn.Sequential(_Kept(self._keep), head)

    def _best_penalty(
        self,
        end_task: Task,
        seen: Tensor,
        targets: dict[str, Tensor],
        held_out: Tensor,
        classes: int,
    ) -> float:
        fitted, others = ~held_out, held_out
        own = {key: value[fitted] for key, value in targets.items()}
        other = {key: value[others] for key, value in targets.items()}
        head = LinearHead.of(seen[fitted], classes)
        losses = []
        for penalty in PENALTIES:
            self._minimise(end_task, head, seen[fitted], own, penalty)
            with torch.no_grad():
                losses.append(end_task.losses(head, seen[others], other).mean())
        return PENALTIES[int(torch.stack(losses).argmin())]

    def _minimise(
        self,
        end_task: Task,
        head: LinearHead,
        seen: Tensor,
        targets: dict[str, Tensor],
        penalty: float,
    ) -> None:
        parameters = list(head.parameters())
        optimizer = torch.optim.LBFGS(
            parameters,
            max_iter=self.iterations,
            tolerance_grad=1e-5,
            tolerance_change=1e-9,
            line_search_fn="strong_wolfe",
        )

        def loss() -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            with torch.enable_grad():
                squares = torch.stack([p.square().sum() for p in parameters]).sum()
                whole = end_task.losses(head, seen, targets).mean() + penalty / 2 * squares
                whole.backward()
            return whole

        optimizer.step(loss)
        optimizer.zero_grad(set_to_none=True)


def _places(batches: Sequence[Batch]) -> Tensor:
    """The place of each row among the different rows, in their order, int64 ``[N]``.

    Rows of earlier steps may hold a row twice, which must not be on both sides.
    """
    known = [batch.targets.get(_NUMBERS, batch.numbers) for batch in batches]
    numbers = [number for number in known if number is not None]
    if len(numbers) < len(known):
        return torch.arange(sum(batch.rows for batch in batches))
    places: dict[int, int] = {}
    return torch.tensor([places.setdefault(n, len(places)) for n in torch.cat(numbers).tolist()])


def _by_row(batch: Batch) -> bool:
    return all(t.dim() > 0 and len(t) == batch.rows for t in batch.targets.values())


@torch.no_grad()
def _classes(head: nn.Module, features: Tensor) -> int:
    """Number of logits that the end task's head computes for a row."""
    was_training = {module: module.training for module in head.modules()}
    head.eval()
    try:
        return int(head(features).shape[-1])
    finally:
        for module, training in was_training.items():
            module.training = training


def logistic(
    settings: DevHeadSettings,
    passes: Passes,
    generator: torch.Generator,
    keep: Callable[[Tensor], Tensor],
) -> LogisticDevHead:
    """Make the dev head that ``--dev-head-fit logistic`` stands for.

    Raises:
        AangError: it is named as the dev head, which chooses the rows.
    """
    if settings.kind in settings.plugins and settings.plugins[settings.kind].load() is logistic:
        raise AangError(
            f"--dev-head {settings.kind}: fits and chooses no rows; give --dev-head-fit "
            f"{settings.kind}, and remembered or drawn as the dev head"
        )
    return LogisticDevHead(keep)
