"""BART's corruptions on texts worked out by hand, and what every transform keeps to.

Of the ids, 1 begins a row and 2 ends a text; 4 reads " the", 5 " Paris", 13 ".", 14 "?", 15 ")".
"""

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from aang_plugin_bart.delete import Delete
from aang_plugin_bart.infill import Infill, filled
from aang_plugin_bart.permute_sentences import PermuteSentences
from aang_testing import VOCABULARY, SampleRows, check_transform
from torch import Generator, Tensor

from aang_core import ConfigError, Corruption, Transform
from tests.support.plugins import MASK


def applied(transform: Transform, row: list[int], seed: int = 0, times: int = 1) -> Corruption:
    ids = torch.tensor([row] * times)
    ordinary = (ids != 1) & (ids != 2)
    return transform(ids, ordinary, VOCABULARY, Generator().manual_seed(seed))


def many(transform: Transform) -> tuple[SampleRows, Corruption]:
    rows = SampleRows.of_lengths([256] * 128, tokens=256, seed=1)
    generator = Generator().manual_seed(2)
    return rows, transform(rows.ids, rows.ordinary, rows.vocabulary, generator)


@pytest.mark.parametrize("transform", [Delete(), Delete(0.9), PermuteSentences()])
def test_the_contract(transform: Transform) -> None:
    check_transform(transform)


@pytest.mark.parametrize("transform", [Infill(), Infill(1), Infill(0.5, 1)])
def test_the_contract_of_infill(transform: Transform) -> None:
    check_transform(transform, provides=("masks-tokens",))


def test_deleted_tokens_leave_no_gap() -> None:
    """What is left of 4 5 6 7 is in order, together, and says where it came from."""
    rows = SampleRows.of_lengths([9, 5], tokens=9, seed=0)
    corruption = Delete(0.5)(rows.ids, rows.ordinary, VOCABULARY, Generator().manual_seed(0))
    placed = rows.placed(corruption)
    assert placed.before is not None
    for row in range(2):
        real = placed.rows.real[row]
        assert real.tolist() == sorted(real.tolist(), reverse=True)
        origin = placed.before.origin[row][real]
        assert origin.tolist() == sorted(set(origin.tolist()))
        assert torch.equal(placed.rows.ids[row][real], rows.ids[row][origin])
        assert placed.rows.ids[row][real][-1] == 2


def test_as_many_are_deleted_and_selected_as_said() -> None:
    rows, corruption = many(Delete(0.2))
    assert corruption.real is not None
    ordinary = int(rows.ordinary.sum())
    assert (~corruption.real).sum().item() / ordinary == pytest.approx(0.2, abs=0.01)
    assert not (corruption.selected & ~corruption.real).any()
    assert corruption.selected.sum().item() / ordinary == pytest.approx(0.8 * 0.15, abs=0.01)


TWO_TEXTS = [1, 4, 13, 5, 4, 14, 5, 13, 2, 4, 4, 13, 5, 15, 2]
"""The. Paris the? Paris. / the the. Paris), with the first text's sentences at 1, 3 and 6."""


def sentences(row: Tensor) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The origins of the tokens of each sentence, in both texts."""
    first, second = row[1:8].tolist(), row[9:14].tolist()

    def cut(origins: list[int], starts: set[int]) -> list[tuple[int, ...]]:
        found: list[list[int]] = []
        for origin in origins:
            if origin in starts:
                found.append([])
            found[-1].append(origin)
        return [tuple(sentence) for sentence in found]

    return cut(first, {1, 3, 6}), cut(second, {9, 12})


def test_every_order_of_sentences_is_equally_likely_and_texts_do_not_mix() -> None:
    origin = applied(PermuteSentences(), TWO_TEXTS, times=6000).origin
    assert origin is not None
    assert origin[:, [0, 8, 14]].unique(dim=0).tolist() == [[0, 8, 14]]
    orders: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for row in origin:
        first, second = sentences(row)
        assert sorted(first) == [(1, 2), (3, 4, 5), (6, 7)]
        assert sorted(second) == [(9, 10, 11), (12, 13)]
        orders[tuple(first)] += 1
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())


def test_ids_and_selection_move_with_their_tokens() -> None:
    corruption = applied(PermuteSentences(), TWO_TEXTS, seed=3)
    assert corruption.origin is not None
    before = torch.tensor([TWO_TEXTS])
    assert torch.equal(corruption.ids, before.gather(1, corruption.origin))


def test_infilling_by_hand() -> None:
    """Spans of two and of none: 5 6 becomes one mask, which stands for 5; another is inserted."""
    # Slots: the spans, then the tokens that are left, in the order of the keys.
    keys = [0.2, 0.6, 0.1, 0.4, 0.7]
    slots = list(filled([1, 2, 3, 4, 5], [2, 0], keys))
    assert slots == [(1, False), (2, True), (4, False), (-1, True), (5, False)]


def test_spans_cover_thirty_percent_and_each_has_one_mask() -> None:
    rows, corruption = many(Infill())
    origin, real = corruption.origin, corruption.real
    assert origin is not None
    assert real is not None
    covered = math.ceil(0.3 * 254)
    for row in range(len(rows.ids)):
        left = real[row] & (origin[row] >= 0) & ~corruption.selected[row]
        assert int(left.sum()) == 2 + 254 - covered
        kept = origin[row][real[row] & (origin[row] >= 0)]
        assert kept.tolist() == sorted(set(kept.tolist()))
    masks = real & (corruption.ids == MASK)
    assert torch.equal(corruption.selected, masks & (origin >= 0))
    # Poisson(3): one span in e^3 has no token. The last span of a row is cut.
    inserted = (masks & (origin < 0)).sum().item() / masks.sum().item()
    assert inserted == pytest.approx(math.exp(-3), abs=0.01)
    per_span = covered * len(rows.ids) / masks.sum().item()
    assert per_span == pytest.approx(3, abs=0.1)


def test_infilling_keeps_the_texts_of_a_pair_apart() -> None:
    """A span never reaches across the special token between them."""
    for seed in range(50):
        corruption = applied(Infill(0.6), TWO_TEXTS, seed)
        assert corruption.origin is not None
        assert corruption.real is not None
        origin = corruption.origin[0][corruption.real[0]]
        ids = corruption.ids[0][corruption.real[0]]
        special = ids[(ids == 1) | (ids == 2)].tolist()
        assert special == [1, 2, 2]
        assert [o for o in origin.tolist() if o in (0, 8, 14)] == [0, 8, 14]


WITHIN = 3
"""A special token within a text, such as an unknown word."""


def applied_within(transform: Transform, rows: Tensor, seed: int) -> Corruption:
    vocabulary = replace(VOCABULARY, template=frozenset({0, 1, 2}))
    return transform(rows, rows > WITHIN, vocabulary, Generator().manual_seed(seed))


def test_unknown_words_do_not_change_how_much_is_infilled() -> None:
    """A third of the tokens is unknown. They stay, in their order, between those that are left."""
    text = [5, 6, WITHIN] * 30
    rows = torch.tensor([[1, *text, 2, *text, 2]] * 64)
    corruption = applied_within(Infill(), rows, seed=1)
    assert corruption.origin is not None
    assert corruption.real is not None
    for row in range(len(rows)):
        origin = corruption.origin[row][corruption.real[row]]
        selected = corruption.selected[row][corruption.real[row]]
        of_text = (origin >= 0) & (rows[row][origin.clamp(min=0)] > WITHIN)
        for first, last in ((0, 91), (91, 182)):
            in_text = of_text & (origin > first) & (origin < last)
            assert int((in_text & ~selected).sum()) == 60 - 18
        kept = origin[origin >= 0]
        assert kept.tolist() == sorted(set(kept.tolist()))
        special = (rows[row] <= WITHIN).nonzero().flatten()
        assert torch.equal(kept[rows[row][kept] <= WITHIN], special)
        assert not (selected & ~of_text).any()


def test_unknown_words_move_with_their_sentence() -> None:
    row = [1, 4, WITHIN, 13, WITHIN, 5, 14, 5, WITHIN, 2, WITHIN, 4, 13, 2, 0]
    rows = torch.tensor([row] * 600)
    origin = applied_within(PermuteSentences(), rows, seed=2).origin
    assert origin is not None
    orders = Counter(tuple(order) for order in origin[:, :10].tolist())
    first, second, third = (1, 2, 3), (4, 5, 6), (7, 8)
    assert set(orders) == {(0, *a, *b, *c, 9) for a, b, c in permutations([first, second, third])}
    assert origin[:, 10:].unique(dim=0).tolist() == [[10, 11, 12, 13, 14]]


@pytest.mark.parametrize(
    ("transform", "options", "message"),
    [
        (Delete, {"rate": 1}, "rate of transform delete is 1; give a number above 0 and below 1"),
        (Infill, {"rate": 0}, "rate of transform infill is 0"),
        (Infill, {"mean_length": 0.5}, "mean_length of transform infill is 0.5; give a number"),
    ],
)
def test_options_without_a_meaning(
    transform: type[Delete] | type[Infill], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        transform(**options)
