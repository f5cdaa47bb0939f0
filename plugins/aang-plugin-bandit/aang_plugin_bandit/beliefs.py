"""Independent Gaussian beliefs about factors of which only weighted sums are ever seen."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from aang_core import ConfigError

Factor = tuple[str, str]
"""A stage and a primitive in it; what belongs to no stage has one of its own making."""


class Beliefs:
    """W_i ~ N(m_i, v_i), independent, learned from y = Σ φ_i W_i + ε with ε ~ N(0, σ²).

    The update is that of the exact posterior, of which the marginals are kept and the covariances
    dropped (assumed-density filtering): cost and state are one mean and one variance a factor.

    Args:
        factors: whatever there is a belief about, each once; draws have a column for each.
        prior: τ, the standard deviation that every factor starts from, and fades to, about 0.
        noise: σ.
        decay: γ, the share of what is known that fades with every observation.
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
        """Fade, then take in that Σ φ_i W_i was seen to be ``y``.

            1/v_i ← (1 − γ)/v_i + γ/τ²,  m_i/v_i ← (1 − γ) m_i/v_i;
            S = σ² + Σ φ_j² v_j,  e = y − Σ φ_j m_j;
            m_i ← m_i + φ_i v_i e/S,  v_i ← v_i − (φ_i v_i)²/S.

        So the surprise e is credited to the factors in proportion to their part φ_i and to how
        little is known of them, v_i.

        Args:
            shares: φ_i by factor; factors that took no part are left out.
            y: what was seen.
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
