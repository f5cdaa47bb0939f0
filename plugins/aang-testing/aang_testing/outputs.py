"""The contract of outputs."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor, nn

from aang_core.objectives.stages import CorruptedRows, CountsHits, Output
from aang_core.tasks.task import RowLosses
from aang_testing.expectation import (
    PROPERTY,
    expect,
    expect_tensor,
    only_generator_draws,
    unchanged,
)
from aang_testing.heads import HIDDEN_SIZE, SmallHeads
from aang_testing.rows import SINGLE, corrupted_rows, selected_rows

COUNT_TYPES = (torch.int64, torch.int32, torch.float32, torch.float64)


def check_output(output: Output, labelled: bool = True, kind: str = SINGLE) -> None:
    """Check ``output`` on rows with and without prediction targets.

    An output with several views receives each row as often. If an output couples rows, the loss of
    a row may depend on others.

    Args:
        output: the primitive.
        labelled: whether the rows have labels; pass False for an output that works without.
        kind: the kind of end task, which the labels and the heads belong to.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """
    heads = SmallHeads(kind)
    first, second = output.head(heads), output.head(heads)
    expect(isinstance(first, nn.Module), "head", "a torch module", type(first).__name__)
    expect(first is not second, "a second call of head", "a new module", "the same one")
    head = first.double()
    views = len(getattr(output, "views", ("corrupted",)))
    targets_met = _check_contract(output, head, selected_rows(labelled, views, kind), seed=0)

    @PROPERTY
    @given(rows=corrupted_rows(labelled, views, kind), seed=st.integers(0, 2**32))
    def any_rows(rows: CorruptedRows, seed: int) -> None:
        nonlocal targets_met
        targets_met += _check_contract(output, head, rows, seed)

    any_rows()
    expect(targets_met > 0, "targets in some fifty batches", "some", "none")


def _check_contract(output: Output, head: nn.Module, rows: CorruptedRows, seed: int) -> int:
    inputs = {
        "original": rows.original,
        "corrupted": rows.corrupted,
        "selected": rows.selected,
        "ordinary": rows.ordinary,
        "real": rows.real,
        "sees": rows.sees,
        "statistics.document_frequency": rows.statistics.document_frequency,
    }
    with only_generator_draws("targets"), unchanged("targets", inputs):
        targets = output.targets(rows)
    for name, value in targets.items():
        expect(isinstance(value, Tensor), f"target {name}", "a tensor", type(value).__name__)

    generator = Generator().manual_seed(seed)
    shape = (*rows.original.shape, HIDDEN_SIZE)
    # Double precision, so that rounding errors and true zeros cannot be confused.
    hidden = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
    with unchanged("losses", {"hidden": hidden.detach(), **targets}):
        losses = output.losses(head, hidden, targets)
    _check_losses(losses, len(rows.original))
    if isinstance(output, CountsHits):
        with unchanged("hits", {"hidden": hidden.detach(), **targets}):
            hits = output.hits(head, hidden, targets)
        _check_hits(hits, losses.counts)
    coupled = rows.views > 1 or bool(getattr(output, "couples_rows", False))
    _check_gradients(losses, hidden, rows.real, coupled)
    return int(losses.counts.sum())


def _check_losses(losses: RowLosses, rows: int) -> None:
    sums, counts = losses
    expect_tensor(sums, "sums", (rows,), (torch.float64, torch.float32))
    expect_tensor(counts, "counts", (rows,), COUNT_TYPES)
    expect(bool(sums.isfinite().all()), "sums", "finite losses", sums.tolist())
    expect(bool((counts >= 0).all()), "counts", "none negative", counts.tolist())
    empty = sums[counts == 0].tolist()
    expect(not any(empty), "sums of rows without a target", "zeros", empty)
    expect(sums.requires_grad, "sums", "differentiable, without targets too", "no gradient")


def _check_hits(hits: Tensor, counts: Tensor) -> None:
    expect_tensor(hits, "hits", (len(counts),), (torch.int64,))
    between = bool(((hits >= 0) & (hits <= counts)).all())
    expect(between, "hits", f"between 0 and the targets {counts.tolist()}", hits.tolist())


def _check_gradients(losses: RowLosses, hidden: Tensor, real: Tensor, coupled: bool) -> None:
    gradients = [
        torch.autograd.grad(loss, hidden, retain_graph=True, allow_unused=True)[0]
        for loss in losses.sums
    ]
    for row, gradient in enumerate(gradients):
        if gradient is None:
            expect(not losses.counts[row], f"gradient of row {row}", "one, it has targets", "none")
            continue
        expect(bool(gradient.isfinite().all()), f"gradient of row {row}", "finite", gradient)
        reached = gradient.ne(0).any(dim=2)
        others = reached.clone()
        others[row] = False
        expect(
            coupled or not others.any(),
            f"loss of row {row}",
            "dependent on its own hidden states only, or an attribute couples_rows = True",
            f"a gradient at {others.nonzero().tolist()} (row, token)",
        )
        padding = (reached & ~real).nonzero().tolist()
        expect(not padding, "gradient at padding", "zero", f"not zero at {padding} (row, token)")
        expect(
            not reached.any() or bool(losses.counts[row]),
            f"gradient of row {row}, which has no target",
            "zero",
            "not zero",
        )
