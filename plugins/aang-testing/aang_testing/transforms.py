"""The contract of transforms."""

from collections.abc import Iterable
from itertools import zip_longest

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from aang_core.contracts import check_corruption, check_noise, expect, unchanged
from aang_core.objectives.stages import Corruption, EmbeddedRows, NoisesEmbeddings, Transform
from aang_testing.expectation import PROPERTY, only_generator_draws
from aang_testing.rows import SampleRows, token_rows


def check_transform(transform: Transform, provides: Iterable[str] = ()) -> None:
    """Check ``transform``, and that it does what the traits in ``provides`` say.

    Args:
        transform: the primitive.
        provides: traits to check. ``masks-tokens``: some selected tokens become the mask token.
            ``replaces-tokens``: some become another ordinary token. ``unchanged-input``: the ids
            stay as they are. ``noises-embeddings``: there is a method ``noise``.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """

    # A large plain batch first: hypothesis would report a primitive with state as flaky, and
    # whether a trait is true shows only in a batch that is large enough.
    many = SampleRows.of_lengths([64] * 64, tokens=64, seed=0)
    _check_contract(transform, many, seed=0)
    _check_traits(Corruption(*_apply(transform, many, seed=0)), many, frozenset(provides))
    noises, said = isinstance(transform, NoisesEmbeddings), "noises-embeddings" in provides
    expect(noises == said, "trait noises-embeddings", f"{noises}, as for the method noise", said)

    @PROPERTY
    @given(rows=token_rows(), seed=st.integers(0, 2**32))
    def any_rows(rows: SampleRows, seed: int) -> None:
        _check_contract(transform, rows, seed)
        if isinstance(transform, NoisesEmbeddings):
            _check_noise(transform, rows, seed)

    any_rows()


def _apply(transform: Transform, rows: SampleRows, seed: int) -> Corruption:
    return transform(rows.ids, rows.ordinary, rows.vocabulary, Generator().manual_seed(seed))


def _check_contract(transform: Transform, rows: SampleRows, seed: int) -> None:
    inputs = {"ids": rows.ids, "ordinary": rows.ordinary, "vocabulary": rows.vocabulary.ordinary}
    with only_generator_draws("the transform"), unchanged(inputs):
        returned = _apply(transform, rows, seed)
    corruption = check_corruption(returned, rows.ids, rows.ordinary, rows.vocabulary)
    _check_specials(corruption, rows)
    again = _apply(transform, rows, seed)
    expect(
        all(_equal(a, b) for a, b in zip_longest(corruption, again)),
        "a second call with a generator of the same seed",
        "the same corruption",
        "another one",
    )


def _check_noise(transform: NoisesEmbeddings, rows: SampleRows, seed: int) -> None:
    """Check the noise on random embeddings, whose loss is ½‖embedding + noise‖²."""
    table = torch.randn(rows.vocabulary.size, 6, generator=Generator().manual_seed(seed))
    embeddings = table[rows.ids]
    embedded = EmbeddedRows(
        embeddings, rows.ordinary, lambda at: (embeddings + at) * rows.ordinary.unsqueeze(2)
    )
    inputs = {"embeddings": embeddings, "noisy": rows.ordinary}
    with only_generator_draws("the noise"), unchanged(inputs):
        noise = transform.noise(embedded, Generator().manual_seed(seed))
    check_noise(noise, embeddings)
    expect(
        torch.equal(noise, transform.noise(embedded, Generator().manual_seed(seed))),
        "a second call with a generator of the same seed",
        "the same noise",
        "another one",
    )


def _check_specials(corruption: Corruption, rows: SampleRows) -> None:
    """Special tokens stay as they are, and so does padding where nothing moves."""
    if not _moved(corruption):
        touched = ((corruption.ids != rows.ids) & ~rows.ordinary).nonzero().tolist()
        what = "special tokens and padding"
        expect(not touched, what, "left as they are", f"changed at {touched}")
        return
    placed = rows.placed(corruption)
    assert placed.before is not None
    special = placed.rows.real & ~placed.text
    for row, origin in enumerate(placed.before.origin):
        wanted = (rows.real & ~rows.ordinary)[row].nonzero().flatten()
        kept = origin[special[row]]
        expect(
            torch.equal(kept, wanted) and int(origin[0]) == 0,
            "special tokens",
            f"all, in their order, from {wanted.tolist()}, and the first one at the beginning",
            f"those from {kept.tolist()}, and at the beginning the token from {int(origin[0])}",
        )
        changed = (placed.rows.ids[row][special[row]] != rows.ids[row][wanted]).nonzero().tolist()
        expect(not changed, "special tokens", "left as they are", f"changed at {changed}")


def _check_traits(corruption: Corruption, rows: SampleRows, provides: frozenset[str]) -> None:
    placed = rows.placed(corruption)
    ids, selected = placed.rows.ids, placed.selected
    expect(bool(selected.any()), "selected of 4,000 ordinary tokens", "some", "none")
    chosen, before = ids[selected], placed.original[selected]
    masked = chosen == rows.vocabulary.mask_id
    if "masks-tokens" in provides:
        expect(bool(masked.any()), "trait masks-tokens", "some selected token masked", "none")
    if "unchanged-input" in provides:
        left = not _moved(corruption)
        expect(left, "trait unchanged-input", "every token where it was", "real or origin")
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


def _moved(corruption: Corruption) -> bool:
    """Whether a corruption says that tokens were deleted, inserted or moved."""
    return corruption.real is not None or corruption.origin is not None


def _equal(first: Tensor | None, second: Tensor | None) -> bool:
    if first is None or second is None:
        return first is second
    return torch.equal(first, second)
