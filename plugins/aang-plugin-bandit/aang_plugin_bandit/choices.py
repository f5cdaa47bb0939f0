"""The choices of a round of the factored bandit: an end-task weight and a set of objectives."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aang_core import ConfigError, TaskCard
from aang_plugin_bandit.beliefs import Factor

OWN = "all"
"""Stage of W_All, the objectives' own factors."""
SHARE = "end-task-weight"
"""Stage of W_λ, a factor for every end-task weight that can be chosen."""
LEVEL: Factor = ("level", "any round")
"""W_0, the gain of any round at this time of the training."""


@dataclass(frozen=True)
class Choice:
    """λ_e, and the n objectives that share 1 − λ_e equally; no objectives if λ_e is 1.

    Attributes:
        end_task_weight: λ_e.
        objectives: their names.
    """

    end_task_weight: float
    objectives: tuple[str, ...]

    @property
    def coefficient(self) -> float:
        """(1 − λ_e)/n, the coefficient of each objective; 0 without objectives."""
        return (1 - self.end_task_weight) / len(self.objectives) if self.objectives else 0.0


class Choices:
    """All possible rounds, and the best of them under given values of the factors.

    There are F factors, m objectives and L end-task weights.

    Args:
        objectives: their cards.
        end_task_weights: the candidates for λ_e.
        n: number of objectives in a set; fewer if there are fewer.

    Raises:
        ConfigError: a stage has the name of one of the bandit's own.
    """

    def __init__(
        self, objectives: Sequence[TaskCard], end_task_weights: Sequence[float], n: int
    ) -> None:
        for card in objectives:
            for name in {OWN, SHARE, LEVEL[0]} & set(card.factors):
                raise ConfigError(
                    f"objective {card.name!r} has a stage called {name!r}, which names factors of "
                    "the bandit itself; rename the stage"
                )
        self._parts: dict[str, list[Factor]] = {
            card.name: [(OWN, card.name), *card.factors.items()] for card in objectives
        }
        # Without objectives the end task has the whole loss, whatever the candidates are.
        self._weights = list(end_task_weights) if objectives else [1.0]
        self._n = min(n, len(objectives))
        shares = [_share(weight) for weight in self._weights]
        parts = [part for parts in self._parts.values() for part in parts]
        self.factors: list[Factor] = list(dict.fromkeys([LEVEL, *shares, *parts]))
        self._columns = [self.factors.index(share) for share in shares]
        self._uses = torch.zeros(len(objectives), len(self.factors), dtype=torch.float64)
        for row, of_objective in enumerate(self._parts.values()):
            for part in of_objective:
                self._uses[row, self.factors.index(part)] = 1

    def shares(self, choice: Choice) -> dict[Factor, float]:
        """φ, the share of every factor in the gain of a round of ``choice``.

        It is 1 for the level and for λ_e's factor. A factor of objectives has the sum of the
        coefficients of those that use it: AANG sums cosines in this way too, and an objective can
        only have an effect through its part of the loss.
        """
        shares = {LEVEL: 1.0, _share(choice.end_task_weight): 1.0}
        for name in choice.objectives:
            for factor in self._parts[name]:
                shares[factor] = shares.get(factor, 0.0) + choice.coefficient
        return shares

    def best(self, values: Tensor) -> list[Choice]:
        """The choice with the largest Σ φ_i W_i, for each row of ``values`` ``[S, F]``.

        For any λ_e below 1 it has the n objectives with the largest s_k = W_All[k] + Σ_stages W, so
        one ranking serves all candidates.
        """
        scores, top = (values @ self._uses.T).topk(self._n, dim=1)
        mean = scores.mean(dim=1, keepdim=True) if self._n else torch.zeros(len(values), 1)
        weights = torch.tensor(self._weights, dtype=torch.float64)
        best = (values[:, self._columns] + (1 - weights) * mean).argmax(dim=1)
        names = list(self._parts)
        return [
            Choice(weight, tuple(names[i] for i in row) if weight < 1 else ())
            for weight, row in zip(weights[best].tolist(), top.tolist(), strict=True)
        ]


def _share(weight: float) -> Factor:
    return SHARE, f"{weight:g}"
