"""Independent Gaussian beliefs about factors of which only weighted sums are observed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from aang_core import ConfigError

Factor = tuple[str, str]
"""A stage and a primitive in it; factors outside the stages have a stage made up for them."""


class Beliefs:
    """W_i ~ N(m_i, v_i), independent, learned from y = Σ φ_i W_i + ε with ε ~ N(0, σ²).

    The update computes the exact posterior, keeps its marginals and drops the covariances
    (assumed-density filtering), so the state is one mean and one variance per factor.

    Args:
        factors: each once; draws have a column for each.
        prior: τ, the standard deviation about 0 that every factor starts from and fades to.
        noise: σ.
        decay: γ, the share of the knowledge that fades with every observation.
    """

    def __init__(
        self, factors: Iterable[Factor], *, prior: float, noise: float, decay: float
    ) -> None:
        self._index = {factor: i for i, factor in enumerate(factors)}
        self._prior = prior
        self._noise = noise
        self._decay = decay
        self._mean = [0.0] * len(self._index)
        self._variance = [prior**2] * len(self._index)

    def draw(self, generator: Generator, count: int = 1) -> Tensor:
        """``count`` draws of all F factors, float64 ``[count, F]``."""
        shape = (count, len(self._index))
        normal = torch.randn(shape, dtype=torch.float64, generator=generator)
        mean = torch.tensor(self._mean, dtype=torch.float64)
        return mean + torch.tensor(self._variance, dtype=torch.float64).sqrt() * normal

    def learn(self, shares: Mapping[Factor, float], y: float) -> None:
        """Fade, then learn from the observation Σ φ_i W_i = ``y``.

            1/v_i ← (1 − γ)/v_i + γ/τ²,  m_i/v_i ← (1 − γ) m_i/v_i;
            S = σ² + Σ φ_j² v_j,  e = y − Σ φ_j m_j;
            m_i ← m_i + φ_i v_i e/S,  v_i ← v_i − (φ_i v_i)²/S.

        The surprise e is thus credited to the factors in proportion to their share φ_i and to their
        uncertainty v_i.

        Args:
            shares: φ_i by factor, without those that took no part.
            y: the observed value.
        """
        for i, (mean, variance) in enumerate(zip(self._mean, self._variance, strict=True)):
            precision = (1 - self._decay) / variance + self._decay / self._prior**2
            self._mean[i] = (1 - self._decay) * mean / variance / precision
            self._variance[i] = 1 / precision
        parts = {self._index[factor]: share for factor, share in shares.items()}
        spread = self._noise**2 + math.fsum(p**2 * self._variance[i] for i, p in parts.items())
        surprise = y - math.fsum(p * self._mean[i] for i, p in parts.items())
        for i, part in parts.items():
            gain = part * self._variance[i] / spread
            self._mean[i] += gain * surprise
            self._variance[i] -= gain * part * self._variance[i]

    def means(self) -> dict[str, dict[str, float]]:
        """m_i by stage and name."""
        return self._by_stage(self._mean)

    def deviations(self) -> dict[str, dict[str, float]]:
        """√v_i by stage and name."""
        return self._by_stage([math.sqrt(variance) for variance in self._variance])

    def state_dict(self) -> dict[str, Any]:
        """Means and variances by stage and name."""
        return {"mean": self.means(), "variance": self._by_stage(self._variance)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore saved beliefs.

        Raises:
            ConfigError: they are about other factors.
        """
        saved = {(stage, name) for stage, values in state["mean"].items() for name in values}
        if saved != set(self._index):
            odd = ", ".join(f"{stage} {name}" for stage, name in sorted(saved ^ set(self._index)))
            raise ConfigError(
                "the saved beliefs are about another space than this run's; they differ in: "
                f"{odd}. Continue with the space and the end_task_weights of the saved run"
            )
        self._mean = [float(state["mean"][stage][name]) for stage, name in self._index]
        self._variance = [float(state["variance"][stage][name]) for stage, name in self._index]

    def _by_stage(self, values: Sequence[float]) -> dict[str, dict[str, float]]:
        by_stage: dict[str, dict[str, float]] = {}
        for (stage, name), value in zip(self._index, values, strict=True):
            by_stage.setdefault(stage, {})[name] = value
        return by_stage
