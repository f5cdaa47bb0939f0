"""Small heads for outputs under test."""

from torch import Tensor, nn

from aang_core.tasks.task import RowLosses
from aang_testing.rows import SINGLE, VOCABULARY, sample_kind

HIDDEN_SIZE = 8


class SmallHeads:
    """Linear heads on a hidden size of 8, over 40 token ids and 3 classes; no dropout.

    Args:
        kind: the kind of end task, which may have a head with one output, or one that reads every
            token.
    """

    hidden_size = HIDDEN_SIZE
    vocabulary = VOCABULARY

    def __init__(self, kind: str = SINGLE) -> None:
        self._type = sample_kind(kind)
        self._classifier = self.classification()

    def language_model(self) -> nn.Module:
        return nn.Linear(HIDDEN_SIZE, VOCABULARY.size)

    def classification(self) -> nn.Module:
        linear = nn.Linear(HIDDEN_SIZE, len(self._type.labels))
        return linear if self._type.reads_every_token else nn.Sequential(_FirstToken(), linear)

    def label_losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        return self._type.losses(logits, labels)

    def end_task(self) -> nn.Module:
        return nn.Sequential(self._classifier)

    def positions(self) -> nn.Module:
        return nn.Embedding(64, HIDDEN_SIZE)

    def token_regression(self) -> nn.Module:
        return nn.Sequential(nn.Linear(HIDDEN_SIZE, 1), nn.Flatten(start_dim=-2))


class _FirstToken(nn.Module):
    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[:, 0]
