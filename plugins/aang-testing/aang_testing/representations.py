"""The contract of representations."""

from collections.abc import Iterable

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from aang_core.contracts import check_sees, expect, unchanged, who_sees_whom
from aang_core.objectives.stages import Representation, ShownRows, TextRepresentation
from aang_testing.expectation import PROPERTY, only_generator_draws
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
    inputs = {"real": rows.real, "ids": rows.ids, "ordinary": rows.ordinary}
    with only_generator_draws("the representation"), unchanged(inputs):
        sees = _sees(representation, rows, seed)
    check_sees(sees, rows.real)
    expect(
        torch.equal(sees, _sees(representation, rows, seed)),
        "a second call with a generator of the same seed",
        "the same mask",
        "another one",
    )
    return sees


def _sees(representation: AnyRepresentation, rows: SampleRows, seed: int) -> Tensor:
    shown = ShownRows(rows.ids, rows.real, rows.ordinary, rows.vocabulary)
    return who_sees_whom(representation, shown, Generator().manual_seed(seed))


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
