"""The contract of outputs."""

from dataclasses import fields, replace
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor, nn

from aang_core.contracts import (
    check_hits,
    check_losses,
    check_targets,
    expect,
    expect_base,
    unchanged,
)
from aang_core.objectives.stages import CorruptedRows, Output
from aang_core.tasks.task import RowLosses
from aang_testing.expectation import PROPERTY, only_generator_draws
from aang_testing.heads import HIDDEN_SIZE, SmallHeads
from aang_testing.rows import SINGLE, corrupted_rows, selected_rows


def check_output(output: Output, labelled: bool = True, kind: str = SINGLE) -> None:
    """Check ``output`` on rows with and without prediction targets.

    An output with several views receives each row once per view. If an output couples rows, the
    loss of a row may depend on others.

    Args:
        output: the primitive.
        labelled: whether the rows have labels; pass False for an output that works without.
        kind: the kind of end task, which the labels and the heads belong to.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """
    expect_base(output, Output)
    heads = SmallHeads(kind)
    first, second = output.head(heads), output.head(heads)
    expect(isinstance(first, nn.Module), "head", "a torch module", type(first).__name__)
    expect(first is not second, "a second call of head", "a new module", "the same one")
    views = len(output.views)
    rows = selected_rows(labelled, views, kind)
    # In half precision, losses have another dtype, and counts must not.
    hidden = torch.zeros((*rows.original.shape, HIDDEN_SIZE), dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        check_losses(output.losses(first, hidden, output.targets(rows)), hidden)
    head = first.double()
    selected = selected_rows(labelled, views, kind)
    targets_met = _check_contract(output, head, selected, seed=0)
    if views == 1 and not output.couples_rows:
        _check_row_alone(output, head.eval(), selected)
        head.train()

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
    with only_generator_draws("targets"), unchanged(inputs):
        targets = output.targets(rows)
    check_targets(targets)

    generator = Generator().manual_seed(seed)
    shape = (*rows.original.shape, HIDDEN_SIZE)
    # Double precision, so that rounding errors and true zeros cannot be confused.
    hidden = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
    torch_alone = only_generator_draws("losses", "torch's generator", dropout=True)
    with torch_alone, unchanged({"hidden": hidden.detach(), **targets}):
        losses = check_losses(output.losses(head, hidden, targets), hidden)
        hits = output.hits(head, hidden, targets)
    if hits is not None:
        check_hits(hits, losses.counts)
    coupled = rows.views > 1 or output.couples_rows
    _check_gradients(losses, hidden, rows.real, coupled)
    return int(losses.counts.sum())


def _check_row_alone(output: Output, head: nn.Module, rows: CorruptedRows) -> None:
    """The loss of a row is the same in a batch of any size."""
    first: dict[str, Any] = {
        field.name: value[:1]
        for field in fields(rows)
        if isinstance(value := getattr(rows, field.name), Tensor)
    }
    generator = Generator().manual_seed(0)
    shape = (*rows.original.shape, HIDDEN_SIZE)
    hidden = torch.randn(shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        among = output.losses(head, hidden, output.targets(rows))
        alone = output.losses(head, hidden[:1], output.targets(replace(rows, **first)))
    expect(
        torch.allclose(among.sums[:1], alone.sums) and torch.equal(among.counts[:1], alone.counts),
        "loss and count of a row",
        "the same alone as in a batch, or an attribute couples_rows = True",
        f"{alone.sums.item():.4g} and {alone.counts.item()} alone, {among.sums[0].item():.4g} and "
        f"{among.counts[0].item()} in a batch of {len(hidden)}",
    )


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
