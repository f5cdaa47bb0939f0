"""Row orders and shares of a row budget."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.training import RowOrder, share_rows


@given(rows=st.integers(1, 40), takes=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_every_pass_takes_every_row_once(rows: int, takes: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    order = RowOrder(rows)
    taken = torch.cat([order.take(n, generator) for n in takes]).tolist()
    for start in range(0, len(taken) - rows + 1, rows):
        assert sorted(taken[start : start + rows]) == list(range(rows))


@given(rows=st.integers(1, 20), first=st.integers(1, 30), then=st.integers(1, 30))
def test_an_order_goes_on_from_its_state(rows: int, first: int, then: int) -> None:
    generator = torch.Generator().manual_seed(1)
    order = RowOrder(rows)
    order.take(first, generator)
    state, random = order.state_dict(), generator.get_state()
    expected = order.take(then, generator)
    again, restored = RowOrder(rows), torch.Generator()
    again.load_state_dict(state)
    restored.set_state(random)
    assert torch.equal(again.take(then, restored), expected)


@given(
    total=st.integers(1, 300),
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_shares_add_up_and_nobody_goes_without(total: int, weights: list[float]) -> None:
    shares = share_rows(total, {str(i): w for i, w in enumerate(weights)})
    assert sum(shares.values()) == max(total, len(weights))
    assert min(shares.values()) >= 1


def test_shares_are_in_proportion() -> None:
    assert share_rows(100, {"a": 0.7, "b": 0.2, "c": 0.1}) == {"a": 69, "b": 20, "c": 11}
