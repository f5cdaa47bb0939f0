"""TF-IDF targets against numbers worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch
from aang_plugin_tfidf.tf_idf import TfIdf
from aang_testing import VOCABULARY, SmallHeads, check_output, corrupted_rows
from hypothesis import given, settings
from sklearn.feature_extraction.text import TfidfTransformer

from aang_core import CorruptedRows, DocumentStatistics, RowsBefore

torch.set_num_threads(1)


def rows_of(
    ids: list[list[int]], ordinary: list[list[int]], documents: int, frequency: list[int]
) -> CorruptedRows:
    original = torch.tensor(ids)
    mask = torch.tensor(ordinary, dtype=torch.bool)
    return CorruptedRows(
        original=original,
        corrupted=torch.full_like(original, 3),
        selected=torch.zeros_like(mask),
        ordinary=mask,
        real=torch.ones_like(mask),
        labels=None,
        statistics=DocumentStatistics(documents, torch.tensor(frequency)),
        sees=torch.ones(*mask.shape, mask.shape[1], dtype=torch.bool),
        vocabulary=VOCABULARY,
    )


def test_it_keeps_the_contract() -> None:
    check_output(TfIdf())
    check_output(TfIdf(), labelled=False)


def test_targets_by_hand() -> None:
    # Three documents; token 5 is in all of them, token 6 in one. The row: 5 5 6 between specials.
    rows = rows_of([[1, 5, 5, 6, 2]], [[0, 1, 1, 1, 0]], 3, [0, 3, 3, 0, 0, 3, 1])
    common = 2 / 3 * 1.0  # tf = 2/3, idf = ln(4/4) + 1
    rare = 1 / 3 * (math.log(4 / 2) + 1)  # tf = 1/3, idf = ln(4/2) + 1
    scale = math.sqrt((2 * common**2 + rare**2) / 3)
    targets = TfIdf().targets(rows)
    expected = [0.0, common / scale, common / scale, rare / scale, 0.0]
    assert targets["value"][0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_document_keeps_its_counts_when_tokens_are_deleted() -> None:
    """As above, without the first 5: the other one is still in the document twice."""
    rows = rows_of([[1, 5, 6, 2]], [[0, 1, 1, 0]], 3, [0, 3, 3, 0, 0, 3, 1])
    document = torch.tensor([[1, 5, 5, 6, 2]])
    before = RowsBefore(document, document > 2, torch.tensor([[0, 2, 3, 4]]))
    value = TfIdf().targets(replace(rows, before=before))["value"][0]
    ratio = 2 * 1.0 / (math.log(4 / 2) + 1)
    assert (value[1] / value[2]).item() == pytest.approx(ratio)


def test_targets_agree_with_scikit_learn_up_to_the_scale_of_the_row() -> None:
    ids = [[1, 5, 7, 5, 6, 8, 5, 2]]
    counts = [[0, 0, 0, 0, 0, 3, 1, 1, 1]]
    frequency = [0, 0, 0, 0, 0, 9, 4, 1, 0]
    transformer = TfidfTransformer(norm=None)
    # scikit-learn takes document frequencies from a matrix of documents; make one that has them.
    documents = [[int(row < df) for df in frequency] for row in range(10)]
    reference = transformer.fit(documents).transform(counts).toarray()[0]
    value = TfIdf().targets(rows_of(ids, [[0, 1, 1, 1, 1, 1, 1, 0]], 10, frequency))["value"][0]
    expected = torch.tensor([reference[token] for token in ids[0][1:-1]], dtype=torch.float32)
    ratio = value[1:-1] / expected
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), atol=1e-5)


@settings(deadline=None)
@given(rows=corrupted_rows())
def test_predicting_zero_costs_one_per_token(rows: CorruptedRows) -> None:
    output = TfIdf()
    head = output.head(SmallHeads())
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    hidden = torch.zeros((*rows.original.shape, 8))
    sums, counts = output.losses(head, hidden, output.targets(rows))
    assert torch.equal(counts, rows.ordinary.sum(1))
    assert torch.allclose(sums, counts.float(), rtol=1e-4)


def test_the_loss_is_the_squared_error_at_ordinary_tokens() -> None:
    rows = rows_of([[1, 5, 6, 2]], [[0, 1, 1, 0]], 2, [2, 2, 2, 2, 2, 2, 1])
    output = TfIdf()
    head = output.head(SmallHeads())
    hidden = torch.randn((1, 4, 8), generator=torch.Generator().manual_seed(0))
    targets = output.targets(rows)
    sums, counts = output.losses(head, hidden, targets)
    predicted = head(hidden)[0]
    expected = sum((predicted[t] - targets["value"][0, t]).item() ** 2 for t in (1, 2))
    assert counts.tolist() == [2]
    assert sums.item() == pytest.approx(expected, rel=1e-5)
