"""The contract of representations."""

from collections.abc import Iterable

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from aang_core.objectives.stages import Representation, ShownRows, TextRepresentation
from aang_testing.expectation import (
    PROPERTY,
    expect,
    expect_tensor,
    only_generator_draws,
    unchanged,
)
from aang_testing.rows import SampleRows, token_rows

AnyRepresentation = Representation | TextRepresentation


def check_representation(representation: AnyRepresentation, provides: Iterable[str] = ()) -> None:
    """Check ``representation``, and that the traits in ``provides`` are true.

    Args:
        representation: the primitive.
        provides: traits to check. ``sentence-representation``: the first token sees every real
            token of its row. ``full-attention``: every real token sees every real token of its row.
            ``directional``: tokens see one side only, always the same one.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """
    traits = frozenset(provides)
    # A large plain batch first: hypothesis would report a primitive with state as flaky.
    _check_contract(representation, SampleRows.of_lengths([9, 30, 32], 32, seed=0), seed=0)

    @PROPERTY
    @given(rows=token_rows(), seed=st.integers(0, 2**32))
    def any_rows(rows: SampleRows, seed: int) -> None:
        sees = _check_contract(representation, rows, seed)
        if "sentence-representation" in traits:
            hidden = (rows.real & ~sees[:, 0]).nonzero().tolist()
            expect(
                not hidden,
                "trait sentence-representation",
                "a first token that sees every real token",
                f"one that does not see {hidden} (row, token)",
            )

        if "full-attention" in traits:
            hides = (rows.real.unsqueeze(1) & rows.real.unsqueeze(2) & ~sees).nonzero().tolist()
            expect(
                not hides,
                "trait full-attention",
                "real tokens that see every real token",
                f"some that do not, {hides} (row, token, token)",
            )

    any_rows()
    if "directional" in traits:
        _check_direction(representation)


def _check_contract(representation: AnyRepresentation, rows: SampleRows, seed: int) -> Tensor:
    real = rows.real
    inputs = {"real": real, "ids": rows.ids, "ordinary": rows.ordinary}
    with only_generator_draws("the representation"), unchanged("the representation", inputs):
        sees = _sees(representation, rows, seed)
    tokens = real.shape[1]
    expect_tensor(sees, "may-attend", (len(real), tokens, tokens), (torch.bool,))

    seen = (sees & ~real.unsqueeze(1)).nonzero().tolist()
    expect(not seen, "padding", "seen by nobody", f"seen at {seen} (row, token, padding)")
    blind = (real & ~sees.any(dim=2)).nonzero().tolist()
    expect(not blind, "real tokens", "each sees at least one", f"{blind} see none (row, token)")

    again = _sees(representation, rows, seed)
    expect(
        torch.equal(sees, again),
        "a second call with a generator of the same seed",
        "the same mask",
        "another one",
    )
    return sees


def _sees(representation: AnyRepresentation, rows: SampleRows, seed: int) -> Tensor:
    generator = Generator().manual_seed(seed)
    if isinstance(representation, TextRepresentation):
        shown = ShownRows(rows.ids, rows.real, rows.ordinary, rows.vocabulary)
        return representation.of_text(shown, generator)
    return representation(rows.real, generator)


def _check_direction(representation: AnyRepresentation) -> None:
    rows = SampleRows.of_lengths([12] * 8, tokens=12, seed=0)
    draws = [_sees(representation, rows, seed) for seed in range(8)]
    ahead = any(bool(sees.triu(diagonal=1).any()) for sees in draws)
    behind = any(bool(sees.tril(diagonal=-1).any()) for sees in draws)
    expect(
        not (ahead and behind),
        "trait directional",
        "tokens that see one side only",
        "some that see what follows them and some that see what precedes them",
    )
