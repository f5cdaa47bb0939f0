"""Small heads for outputs under test."""

from torch import Tensor, nn

from aang_core.task_types.single_label import ONE_CLASS
from aang_core.tasks.task import RowLosses
from aang_core.testing.rows import CLASSES, VOCABULARY

HIDDEN_SIZE = 8


class SmallHeads:
    """Linear heads on a hidden size of 8, over 40 token ids and 3 classes; no dropout."""

    hidden_size = HIDDEN_SIZE
    vocabulary = VOCABULARY

    def __init__(self) -> None:
        self._classifier = _FirstTokenClassifier()

    def language_model(self) -> nn.Module:
        return nn.Linear(HIDDEN_SIZE, VOCABULARY.size)

    def classification(self) -> nn.Module:
        return _FirstTokenClassifier()

    def label_losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        return ONE_CLASS.losses(logits, labels)

    def end_task(self) -> nn.Module:
        return nn.Sequential(self._classifier)

    def positions(self) -> nn.Module:
        return nn.Embedding(64, HIDDEN_SIZE)

    def token_regression(self) -> nn.Module:
        return nn.Sequential(nn.Linear(HIDDEN_SIZE, 1), nn.Flatten(start_dim=-2))


class _FirstTokenClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(HIDDEN_SIZE, CLASSES)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.linear(hidden[:, 0])
        return logits
