"""The contract of every transform, what else aang check-plugin looks at, and what is its own."""

import pytest
import torch
from aang_plugin_drop_tokens import DropTokens
from aang_testing import VOCABULARY, SampleRows
from aang_testing.conformance import Check, checks_of

from aang_core import ConfigError

NAME, OPTIONS = "aang-plugin-drop-tokens", {"drop-tokens": {"rate": 0.5}}


@pytest.mark.parametrize(
    "check", [*checks_of(NAME), *checks_of(NAME, OPTIONS)], ids=lambda check: check.name
)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


def test_what_is_left_is_in_order_and_without_gaps() -> None:
    """A thousand tokens, of which one in ten is gone; the special ones at the ends stay."""
    rows = SampleRows.of_lengths([1002], tokens=1002, seed=0)
    generator = torch.Generator().manual_seed(0)
    corruption = DropTokens()(rows.ids, rows.ordinary, VOCABULARY, generator)
    placed = rows.placed(corruption)
    assert 860 < placed.rows.ids.shape[1] < 940
    left = rows.ids[corruption.real].unsqueeze(0)
    masked = placed.rows.ids.where(~placed.selected, left)
    assert torch.equal(masked, left)
    assert bool((placed.rows.ids[placed.selected] == VOCABULARY.mask_id).all())
    assert placed.selected.sum().item() / left.shape[1] == pytest.approx(0.15, abs=0.01)


def test_its_rate_is_a_probability() -> None:
    with pytest.raises(ConfigError, match=r"rate is 1\.5; give a probability"):
        DropTokens(1.5)
