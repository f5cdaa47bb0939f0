"""The loss of ``denoise`` against one written the long way round."""

import torch
from aang_plugin_bert.denoise import Denoise
from aang_testing import SmallHeads, corrupted_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from aang_core import CorruptedRows

torch.set_num_threads(1)


@settings(deadline=None)
@given(rows=corrupted_rows(), seed=st.integers(0, 1000))
def test_loss_is_the_log_likelihood_of_the_original_tokens(rows: CorruptedRows, seed: int) -> None:
    output = Denoise()
    head = output.head(SmallHeads()).double()
    hidden = torch.randn((*rows.original.shape, 8), generator=torch.Generator().manual_seed(seed))
    hidden = hidden.double()
    sums, counts = output.losses(head, hidden, output.targets(rows))
    for b, row in enumerate(rows.selected.tolist()):
        positions = [t for t, chosen in enumerate(row) if chosen]
        expected = -sum(
            head(hidden[b, t]).log_softmax(-1)[rows.original[b, t]].item() for t in positions
        )
        assert counts[b] == len(positions)
        assert abs(sums[b].item() - expected) < 1e-9


def test_only_selected_positions_are_decoded() -> None:
    decoded: list[torch.Tensor] = []

    class Head(torch.nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            decoded.append(hidden)
            return hidden

    selected = torch.tensor([[False, True, False], [False, False, True]])
    targets = {
        "counts": selected.sum(1),
        "row": torch.tensor([0, 1]),
        "position": torch.tensor([1, 2]),
        "token": torch.tensor([0, 4]),
    }
    hidden = torch.arange(30.0).reshape(2, 3, 5)
    Denoise().losses(Head(), hidden, targets)
    assert torch.equal(decoded[0], torch.stack([hidden[0, 1], hidden[1, 2]]))
