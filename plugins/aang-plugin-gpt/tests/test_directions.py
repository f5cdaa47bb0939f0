"""Reading directions, as masks and through a real encoder."""

from collections.abc import Iterator

import pytest
import torch
from aang_plugin_gpt.left_to_right import LeftToRight
from aang_plugin_gpt.right_to_left import RightToLeft
from aang_testing import SampleRows, check_representation, token_rows
from hypothesis import given, settings
from torch import Tensor
from transformers import RobertaConfig, RobertaModel

from aang_core import Representation

torch.set_num_threads(1)


def test_they_keep_the_contract_and_are_directional() -> None:
    check_representation(LeftToRight(), provides=("directional",))
    check_representation(RightToLeft(), provides=("directional",))


@settings(deadline=None)
@given(rows=token_rows())
def test_a_token_sees_itself_and_all_that_is_real_on_its_side(rows: SampleRows) -> None:
    left = LeftToRight()(rows.real, torch.Generator())
    right = RightToLeft()(rows.real, torch.Generator())
    for b, row in enumerate(rows.real.tolist()):
        for i in range(len(row)):
            for j in range(len(row)):
                assert left[b, i, j] == (row[j] and j <= i)
                assert right[b, i, j] == (row[j] and j >= i)


@pytest.fixture(scope="module")
def encoder() -> RobertaModel:
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
    model = RobertaModel(config, add_pooling_layer=False)
    model.set_attn_implementation("sdpa")
    model.eval()
    return model


@torch.no_grad()
def states_before_and_after_a_change(
    encoder: RobertaModel, representation: Representation, changed: int
) -> Iterator[Tensor]:
    """Hidden states [T, H] of a row, and of the same row with another token at ``changed``."""
    ids = torch.arange(4, 14).unsqueeze(0)
    other = ids.clone()
    other[0, changed] = 40
    sees = representation(torch.ones_like(ids, dtype=torch.bool), torch.Generator())
    mask = sees.unsqueeze(1)
    return (encoder(input_ids=x, attention_mask=mask).last_hidden_state[0] for x in (ids, other))


@pytest.mark.parametrize("changed", [0, 4, 9])
def test_left_to_right_hides_the_future_from_a_real_encoder(
    encoder: RobertaModel, changed: int
) -> None:
    before, after = states_before_and_after_a_change(encoder, LeftToRight(), changed)
    moved = (before - after).abs().amax(dim=1)
    assert (moved[:changed] < 1e-6).all()
    assert (moved[changed:] > 1e-4).all()


@pytest.mark.parametrize("changed", [0, 4, 9])
def test_right_to_left_hides_the_past_from_a_real_encoder(
    encoder: RobertaModel, changed: int
) -> None:
    before, after = states_before_and_after_a_change(encoder, RightToLeft(), changed)
    moved = (before - after).abs().amax(dim=1)
    assert (moved[changed + 1 :] < 1e-6).all()
    assert (moved[: changed + 1] > 1e-4).all()
