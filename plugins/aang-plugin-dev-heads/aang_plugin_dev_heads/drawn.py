"""A dev head on rows drawn for it, as AANG's code has it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from aang_core import AangError, Batch, Task
from aang_core.gradients import DevHead, DevHeadSettings, Passes, fitted_dev_head, to_device


class DrawnDevHead(DevHead):
    """Fits φ* to end-task training rows drawn only for it, as AANG's code does.

    This costs one more pass through the body, without gradients and without dropout, because the
    head stands for the minimiser on its rows. Every process makes this pass. Rows of the step
    itself are left out, if there are others.

    Args:
        inner: fits a head to given features.
        passes: passes through the body.
        rows: number of rows drawn per step.
    """

    def __init__(self, inner: DevHead, passes: Passes, rows: int) -> None:
        self.inner = inner
        self._passes = passes
        self.draws = rows
        self._source: Callable[[int], Sequence[Batch]] | None = None

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:
        self._source = source

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """See `DevHead.fit`.

        Raises:
            AangError: `draw_from` has not been called.
        """
        if self._source is None:
            raise AangError("a dev head on drawn rows needs rows to draw: call draw_from first")
        drawn = self._source(self.draws)
        body = self._passes.body
        # Each by itself: some may rest although the body is in training.
        training = [module for module in body.modules() if module.training]
        body.eval()
        try:
            with torch.no_grad():
                seen = self._passes.dev_features([self._passes.features(b) for b in drawn])
        finally:
            for module in training:
                module.training = True
        own = [batch.numbers for batch in batches if batch.numbers is not None]
        others = _others(seen, drawn, torch.cat(own)) if own else (seen, drawn)
        return self.inner.fit(end_task, *others)


def _others(
    features: Sequence[Tensor], drawn: Sequence[Batch], own: Tensor
) -> tuple[Sequence[Tensor], Sequence[Batch]]:
    """The drawn rows that are not among the step's ``own``; all of them if there are no others.

    A head that was fitted to the rows whose gradient is then measured makes the end task look
    harmful, and with few training rows most of the drawn ones are among them.
    """
    kept: list[tuple[Tensor, Batch]] = []
    for part, batch in zip(features, drawn, strict=True):
        by_row = (t.dim() and len(t) == batch.rows for t in (part, *batch.targets.values()))
        if batch.numbers is None or not all(by_row):
            kept.append((part, batch))
            continue
        left = (~torch.isin(batch.numbers, own)).nonzero().flatten()
        if len(left):
            places = to_device(left, part.device)
            targets = {name: target[places] for name, target in batch.targets.items()}
            numbers = batch.numbers[left]
            kept.append((part[places], Batch({}, targets, len(left), numbers=numbers)))
    if not kept:
        return features, drawn
    return [part for part, _ in kept], [batch for _, batch in kept]


def drawn(
    settings: DevHeadSettings,
    passes: Passes,
    generator: torch.Generator,
    keep: Callable[[Tensor], Tensor],
) -> DrawnDevHead:
    """Make the dev head that ``--dev-head drawn`` stands for.

    Raises:
        AangError: it is also named as the fit, which it is not.
    """
    if settings.fit in settings.plugins and settings.plugins[settings.fit].load() is drawn:
        raise AangError(
            f"--dev-head-fit {settings.fit}: chooses rows and fits nothing; give --dev-head "
            f"{settings.fit}, and adamw or logistic as the fit"
        )
    return DrawnDevHead(fitted_dev_head(settings, passes, generator, keep), passes, settings.rows)
