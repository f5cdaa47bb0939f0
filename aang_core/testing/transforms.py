"""The contract of transforms."""

from collections.abc import Iterable

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from aang_core.objectives.stages import Corruption, Transform
from aang_core.testing.expectation import (
    PROPERTY,
    expect,
    expect_tensor,
    only_generator_draws,
    unchanged,
)
from aang_core.testing.rows import SampleRows, token_rows


def check_transform(transform: Transform, provides: Iterable[str] = ()) -> None:
    """Check ``transform``, and that it does what the traits in ``provides`` say.

    Args:
        transform: the primitive.
        provides: traits to check. ``masks-tokens``: some selected tokens become the mask token.
            ``replaces-tokens``: some become another ordinary token. ``unchanged-input``: the ids
            stay as they are.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """

    # A large plain batch first: hypothesis would report a primitive with state as flaky, and
    # whether a trait is true shows only in a batch that is large enough.
    many = SampleRows.of_lengths([64] * 64, tokens=64, seed=0)
    _check_contract(transform, many, seed=0)
    _check_traits(_apply(transform, many, seed=0), many, frozenset(provides))

    @PROPERTY
    @given(rows=token_rows(), seed=st.integers(0, 2**32))
    def any_rows(rows: SampleRows, seed: int) -> None:
        _check_contract(transform, rows, seed)

    any_rows()


def _apply(transform: Transform, rows: SampleRows, seed: int) -> Corruption:
    return transform(rows.ids, rows.ordinary, rows.vocabulary, Generator().manual_seed(seed))


def _check_contract(transform: Transform, rows: SampleRows, seed: int) -> None:
    inputs = {
        "ids": rows.ids,
        "ordinary": rows.ordinary,
        "vocabulary.ordinary": rows.vocabulary.ordinary,
    }
    with only_generator_draws("the transform"), unchanged("the transform", inputs):
        ids, selected = _apply(transform, rows, seed)
    shape = tuple(rows.ids.shape)
    expect_tensor(ids, "corrupted ids", shape, (torch.int64,))
    expect_tensor(selected, "selected", shape, (torch.bool,))

    outside = selected & ~rows.ordinary
    where = outside.nonzero().tolist()
    expect(not where, "selected tokens", "ordinary tokens only", f"special or padding at {where}")
    touched = ((ids != rows.ids) & ~rows.ordinary).nonzero().tolist()
    expect(not touched, "special tokens and padding", "left as they are", f"changed at {touched}")
    known = (ids >= 0) & (ids < rows.vocabulary.size)
    strange = ids[~known].tolist()
    expect(not strange, "corrupted ids", f"ids below {rows.vocabulary.size}", strange)

    again = _apply(transform, rows, seed)
    expect(
        torch.equal(ids, again.ids) and torch.equal(selected, again.selected),
        "a second call with a generator of the same seed",
        "the same corruption",
        "another one",
    )


def _check_traits(corruption: Corruption, rows: SampleRows, provides: frozenset[str]) -> None:
    ids, selected = corruption
    expect(bool(selected.any()), "selected of 4,000 ordinary tokens", "some", "none")
    chosen, before = ids[selected], rows.ids[selected]
    masked = chosen == rows.vocabulary.mask_id
    if "masks-tokens" in provides:
        expect(bool(masked.any()), "trait masks-tokens", "some selected token masked", "none")
    if "unchanged-input" in provides:
        changed = (ids != rows.ids).nonzero().tolist()
        expect(not changed, "trait unchanged-input", "ids as they came in", f"others at {changed}")
    if "replaces-tokens" in provides:
        replaced = (chosen != before) & torch.isin(chosen, rows.vocabulary.ordinary)
        expect(
            bool(replaced.any()),
            "trait replaces-tokens",
            "some selected token that is another ordinary token now",
            "none",
        )
