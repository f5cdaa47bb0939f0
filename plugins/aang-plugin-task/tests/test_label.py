"""The class behind the outputs ``end-task`` and ``own-label``."""

import dataclasses

import pytest
import torch
from aang_plugin_task.label import Label
from aang_testing import SmallHeads, check_output, corrupted_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from aang_core import CorruptedRows, PluginError

torch.set_num_threads(1)


def test_it_keeps_the_contract() -> None:
    check_output(Label())


@settings(deadline=None)
@given(rows=corrupted_rows(), seed=st.integers(0, 1000))
def test_every_row_is_classified_whatever_was_selected(rows: CorruptedRows, seed: int) -> None:
    output = Label()
    head = output.head(SmallHeads()).double()
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn((*rows.original.shape, 8), generator=generator).double()
    sums, counts = output.losses(head, hidden, output.targets(rows))
    assert counts.tolist() == [1] * len(rows.original)
    assert rows.labels is not None
    for b, label in enumerate(rows.labels.tolist()):
        logits = head(hidden[b : b + 1])[0]
        assert sums[b].item() == pytest.approx(-logits.log_softmax(0)[label].item())


@settings(deadline=None)
@given(rows=corrupted_rows())
def test_rows_without_labels_are_refused_with_a_reason(rows: CorruptedRows) -> None:
    with pytest.raises(PluginError, match="labels:end-task"):
        Label().targets(dataclasses.replace(rows, labels=None))
