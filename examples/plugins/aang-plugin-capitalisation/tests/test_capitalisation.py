"""The contract of every output, what else aang check-plugin looks at, and what is its own."""

from dataclasses import replace

import pytest
import torch
from aang_plugin_capitalisation import NO_TARGET, Capitalisation, kind_of
from aang_testing import SmallHeads, corrupted_rows
from aang_testing.conformance import Check, checks_of
from hypothesis import given

from aang_core import ConfigError, CorruptedRows, Vocabulary, word_starts


@pytest.mark.parametrize(
    "check", checks_of("aang-plugin-capitalisation"), ids=lambda check: check.name
)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *((" the", 0), ("iPhone", 0), (" über", 0), ("Élan", 1), (" I", 1), ('"McDonald', 1)),
        *(("NATO", 2), (" U.S.", 2), (" 42", NO_TARGET), ("漢字", NO_TARGET)),
        ("na\ufffd\ufffdve", NO_TARGET),
    ],
)
def test_how_words_are_written(word: str, kind: int) -> None:
    assert kind_of(word) == kind


@given(rows=corrupted_rows())
def test_all_tokens_of_a_word_have_its_kind(rows: CorruptedRows) -> None:
    """As many targets as selected tokens of words with letters, and none elsewhere."""
    everything = replace(rows, selected=rows.ordinary)
    kinds = Capitalisation().targets(everything)["kind"]
    starts = word_starts(rows.original, rows.ordinary, rows.vocabulary)
    goes_on = rows.ordinary & ~starts
    assert torch.equal(kinds[goes_on], kinds.roll(1, 1)[goes_on])
    some = Capitalisation().targets(rows)["kind"]
    assert torch.equal(some, kinds.masked_fill(~rows.selected, NO_TARGET))


def test_it_refuses_a_tokenizer_without_capitals() -> None:
    class Uncased(SmallHeads):
        vocabulary = Vocabulary(6, 3, torch.arange(4, 6), lambda: ["", "", "", "", " a", "b"])

    with pytest.raises(ConfigError, match="use a cased encoder"):
        Capitalisation().head(Uncased())
