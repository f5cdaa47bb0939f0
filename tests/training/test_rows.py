"""Row orders and shares of a row budget."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from aang_core.training.rows import RowOrder, group_by_length, share_rows


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


def cost(groups: list[list[int]], lengths: list[int], overhead: int) -> int:
    return sum(len(g) * max(lengths[i] for i in g) + overhead for g in groups)


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=7), overhead=st.integers(0, 60))
def test_rows_are_split_at_the_least_cost(lengths: list[int], overhead: int) -> None:
    """No split of the sorted rows into contiguous groups is cheaper, by trying them all."""
    groups = group_by_length(lengths, overhead)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    cuts = range(1, len(order))
    every = (
        [order[a:b] for a, b in itertools.pairwise([0, *chosen, len(order)])]
        for k in range(len(order))
        for chosen in itertools.combinations(cuts, k)
    )
    least = min(cost(split, lengths, overhead) for split in every)
    assert cost(groups, lengths, overhead) == least
