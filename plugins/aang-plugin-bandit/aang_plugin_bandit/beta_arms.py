"""Arms with a reward of zero or one, and a Beta distribution over the probability of each."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from scipy.special import betainc, betaincinv
from torch import Generator

from aang_core import restored_by_task

GRID = 1024
"""Number of intervals of [0, 1] in the integral for the probability of drawing an arm."""


class BetaArms:
    """θ_k ~ Beta(α_k, β_k), the probability that arm k is rewarded; old rewards fade.

    Args:
        names: of the arms.
        prior: α_0 = β_0, which every arm starts from and fades to.
        decay: γ, the share of the knowledge that fades with every reward, whichever arm gets it.
    """

    def __init__(self, names: Iterable[str], *, prior: float, decay: float) -> None:
        self._prior = prior
        self._decay = decay
        self._counts = dict.fromkeys(names, (prior, prior))

    def draw(self, generator: Generator) -> str:
        """The arm whose θ, drawn from its distribution, is largest (Thompson sampling).

        One uniform number per arm goes through the inverse of the arm's distribution function, so
        that the number of draws from ``generator`` does not depend on the counts.
        """
        names = list(self._counts)
        alpha, beta = self._columns()
        uniform = torch.rand(len(names), dtype=torch.float64, generator=generator).numpy()
        return names[int(np.argmax(betaincinv(alpha, beta, uniform)))]

    def reward(self, name: str, reward: bool) -> None:
        """(α_k, β_k) ← (1 − γ)(α_k, β_k) + γ(α_0, β_0) for all k; then count ``reward`` too."""
        kept, fresh = 1 - self._decay, self._decay * self._prior
        self._counts = {
            arm: (kept * alpha + fresh, kept * beta + fresh)
            for arm, (alpha, beta) in self._counts.items()
        }
        alpha, beta = self._counts[name]
        self._counts[name] = (alpha + reward, beta + (not reward))

    def utilities(self) -> dict[str, float]:
        """The mean α_k / (α_k + β_k) of every arm."""
        return {name: alpha / (alpha + beta) for name, (alpha, beta) in self._counts.items()}

    def chances(self) -> dict[str, float]:
        """The probability that each arm is drawn next; they sum to one.

        P(k is largest) = ∫ Π_{j≠k} F_j(x) dF_k(x), on a grid of 1,024 intervals.
        """
        alpha, beta = (column[:, None] for column in self._columns())
        edges = np.linspace(0, 1, GRID + 1)
        below = betainc(alpha, beta, edges)
        with np.errstate(divide="ignore"):
            logs = np.log(betainc(alpha, beta, (edges[:-1] + edges[1:]) / 2))
        # Where an arm's own logarithm is −∞ its own mass is too small to matter.
        others = np.exp(logs.sum(axis=0) - np.where(np.isfinite(logs), logs, 0))
        chances = (np.diff(below, axis=1) * others).sum(axis=1)
        return dict(zip(self._counts, (chances / chances.sum()).tolist(), strict=True))

    def state_dict(self) -> dict[str, list[float]]:
        """[α_k, β_k] by arm."""
        return {name: [alpha, beta] for name, (alpha, beta) in self._counts.items()}

    def load_state_dict(self, state: Mapping[str, Iterable[float]]) -> None:
        """Restore saved counts.

        Raises:
            ConfigError: they belong to other tasks.
        """
        counts = restored_by_task(state, self._counts)
        self._counts = {name: (alpha, beta) for name, (alpha, beta) in counts.items()}

    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        alpha, beta = np.array([*self._counts.values()], dtype=np.float64).T
        return alpha, beta
