"""What comes next in each reading order, and that nothing of it leaks."""

from collections.abc import Callable

import pytest
import torch
from aang_plugin_gpt.left_to_right import LeftToRight
from aang_plugin_gpt.next_token import NextToken
from aang_plugin_gpt.right_to_left import RightToLeft
from aang_plugin_xlnet.random_factorized import RandomFactorized
from aang_testing import VOCABULARY, SmallHeads, check_output
from torch import Generator, Tensor
from transformers import BertConfig, BertModel

from aang_core import ConfigError, CorruptedRows, DocumentStatistics, Representation
from tests.support.model import EncoderBody

torch.set_num_threads(1)

TOKENS = 9
ORDERS: list[Callable[[], Representation]] = [LeftToRight, RightToLeft, RandomFactorized]


def rows_of(ids: Tensor, real: Tensor, sees: Tensor) -> CorruptedRows:
    ordinary = real.clone()
    ordinary[:, 0] = False
    return CorruptedRows(
        original=ids,
        corrupted=ids,
        selected=torch.zeros_like(real),
        ordinary=ordinary,
        real=real,
        labels=None,
        statistics=DocumentStatistics(1, torch.ones(50, dtype=torch.int64)),
        sees=sees,
        vocabulary=VOCABULARY,
    )


def test_it_keeps_the_contract() -> None:
    check_output(NextToken())


@pytest.mark.parametrize(
    ("order", "read"),
    [(LeftToRight, {1: 0, 2: 1, 3: 2}), (RightToLeft, {2: 3, 1: 2})],
)
def test_the_token_before_is_read(order: type, read: dict[int, int]) -> None:
    """One row of four real tokens, the first of them special, and padding."""
    ids = torch.tensor([[1, 10, 11, 12, 0, 0]])
    real = ids > 0
    targets = NextToken().targets(rows_of(ids, real, order()(real, Generator())))
    found = dict(zip(targets["position"].tolist(), targets["read"].tolist(), strict=True))
    assert found == read
    assert targets["token"].tolist() == [ids[0, p].item() for p in found]
    assert targets["counts"].tolist() == [len(read)]


def test_a_random_order_predicts_all_but_its_first_token() -> None:
    """Each token is predicted from the one before it in the order, which does not see it."""
    real = torch.ones(5, TOKENS, dtype=torch.bool)
    sees = RandomFactorized()(real, Generator().manual_seed(3))
    ids = torch.randint(5, 50, real.shape, generator=Generator().manual_seed(4))
    targets = NextToken().targets(rows_of(ids, real, sees))
    # The first token of the row is special and last of the order; one is first of the order.
    assert targets["counts"].tolist() == [TOKENS - 2] * 5
    row, read, position = targets["row"], targets["read"], targets["position"]
    assert not sees[row, read, position].any()
    assert (sees[row, position].sum(dim=1) == sees[row, read].sum(dim=1) + 1).all()


@pytest.mark.parametrize("order", ORDERS)
def test_the_answer_does_not_leak(order: Callable[[], Representation]) -> None:
    """Through a real encoder, changing the token to be predicted changes no logit of its own."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
    )
    body = EncoderBody(BertModel(config, add_pooling_layer=False)).double().eval()
    real = torch.ones(2, TOKENS, dtype=torch.bool)
    real[1, 6:] = False
    sees = order()(real, Generator().manual_seed(1))
    ids = torch.randint(5, 50, real.shape, generator=Generator().manual_seed(2))
    targets = NextToken().targets(rows_of(ids, real, sees))
    hidden = body(ids, sees)
    seen_elsewhere = 0.0
    for row, read, position in zip(
        targets["row"], targets["read"], targets["position"], strict=True
    ):
        changed = ids.clone()
        changed[row, position] = (changed[row, position] - 5 + 7) % 45 + 5
        other = body(changed, sees)
        assert (other[row, read] - hidden[row, read]).abs().max() < 1e-12
        seen_elsewhere = max(seen_elsewhere, (other[row] - hidden[row]).abs().max().item())
    assert seen_elsewhere > 1e-3, "those that may see it do"


def test_scattered_pairs_are_no_order() -> None:
    """The option pairs of random-factorized is refused with what to do."""
    real = torch.ones(3, TOKENS, dtype=torch.bool)
    sees = RandomFactorized(pairs=0.6)(real, Generator().manual_seed(0))
    with pytest.raises(ConfigError, match="leave out the option pairs"):
        NextToken().targets(rows_of(torch.ones_like(real).long(), real, sees))


def test_the_position_to_predict_matters_to_the_head() -> None:
    """Two tokens may be predicted from one hidden state."""
    head = NextToken().head(SmallHeads())
    hidden = torch.randn(1, 8).expand(2, 8)
    logits = head(hidden, torch.tensor([3, 5]))
    assert not torch.equal(logits[0], logits[1])
