"""The random order, as a mask and through a real encoder."""

from typing import Any

import pytest
import torch
from aang_plugin_xlnet.random_factorized import RandomFactorized
from aang_testing import SampleRows, check_representation, token_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RobertaConfig, RobertaModel

from aang_core import ConfigError

torch.set_num_threads(1)


@pytest.mark.parametrize("pairs", [None, 0.6, 0.01, 1.0])
def test_it_keeps_the_contract(pairs: Any) -> None:
    check_representation(RandomFactorized(pairs), provides=("sentence-representation",))


@settings(deadline=None)
@given(rows=token_rows(), seed=st.integers(0, 1000))
def test_every_row_has_a_total_order_that_ends_with_the_first_token(
    rows: SampleRows, seed: int
) -> None:
    sees = RandomFactorized()(rows.real, torch.Generator().manual_seed(seed))
    for b, length in enumerate(rows.real.sum(1).tolist()):
        # The i-th token of a total order sees itself and its i predecessors, so the numbers of
        # tokens seen are 1 to T, and each sees all that the one before it in the order sees.
        seen = {i: frozenset(sees[b, i].nonzero().flatten().tolist()) for i in range(length)}
        order = sorted(seen, key=lambda i: len(seen[i]))
        for place, i in enumerate(order):
            assert seen[i] == frozenset(order[: place + 1])
        assert order[-1] == 0


def test_every_token_but_the_first_is_equally_likely_at_every_place() -> None:
    real = torch.ones((6000, 4), dtype=torch.bool)
    sees = RandomFactorized()(real, torch.Generator().manual_seed(0))
    place = sees.sum(2)
    assert (place[:, 0] == 4).all()
    for token in (1, 2, 3):
        for wanted in (1, 2, 3):
            count = int((place[:, token] == wanted).sum())
            # 6,000 trials at 1/3: a standard deviation is 36.5.
            assert abs(count - 2000) < 5 * 36.5


def test_a_fresh_order_for_every_row() -> None:
    sees = RandomFactorized()(torch.ones((2, 30), dtype=torch.bool), torch.Generator())
    assert not torch.equal(sees[0], sees[1])


def test_equal_keys_still_make_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.zeros(shape))
    sees = RandomFactorized()(torch.ones((1, 5), dtype=torch.bool), torch.Generator())
    assert sorted(sees.sum(2)[0].tolist()) == [1, 2, 3, 4, 5]


@torch.no_grad()
def test_nothing_leaks_around_the_order_through_a_real_encoder() -> None:
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=20,
        pad_token_id=1,
    )
    encoder = RobertaModel(config, add_pooling_layer=False).eval()
    encoder.set_attn_implementation("sdpa")
    ids = torch.arange(4, 14).unsqueeze(0)
    sees = RandomFactorized()(torch.ones_like(ids, dtype=torch.bool), torch.Generator())
    before = encoder(input_ids=ids, attention_mask=sees.unsqueeze(1)).last_hidden_state[0]
    for changed in range(10):
        other = ids.clone()
        other[0, changed] = 40
        after = encoder(input_ids=other, attention_mask=sees.unsqueeze(1)).last_hidden_state[0]
        moved = (before - after).abs().amax(dim=1)
        assert torch.equal(moved > 1e-6, sees[0, :, changed])


def test_the_released_variant_keeps_that_share_of_the_pairs_and_no_diagonal() -> None:
    real = torch.ones((20, 50), dtype=torch.bool)
    sees = RandomFactorized(pairs=0.6)(real, torch.Generator().manual_seed(0))[:, 1:]
    pairs = 20 * 49 * 49
    assert not sees.diagonal(offset=1, dim1=1, dim2=2).any()
    assert abs(int(sees.sum()) - 0.6 * pairs) < 5 * (pairs * 0.6 * 0.4) ** 0.5


def test_the_released_variant_lets_a_token_that_would_see_nothing_see_itself() -> None:
    sees = RandomFactorized(pairs=1e-9)(torch.ones((1, 6), dtype=torch.bool), torch.Generator())
    assert torch.equal(sees[0, 1:], torch.eye(6, dtype=torch.bool)[1:])
    assert sees[0, 0].all()


@pytest.mark.parametrize("pairs", [0, -1, 1.5, float("nan"), "0.6", True])
def test_a_senseless_share_is_refused(pairs: Any) -> None:
    with pytest.raises(ConfigError, match="option pairs"):
        RandomFactorized(pairs)
