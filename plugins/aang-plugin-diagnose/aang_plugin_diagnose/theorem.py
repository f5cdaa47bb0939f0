"""Theorem 4.1 of AANG with numbers in it: the bound on the end task's generalisation error."""

from dataclasses import asdict, dataclass
from typing import Any

from aang.config import TrainConfig
from torch import nn

from aang_core import OptimizerSettings
from aang_core.training.optimization import Optimization

WEIGHTS = tuple(percent / 100 for percent in range(1, 100))
"""The λ_e that the bound is computed at."""


@dataclass(frozen=True)
class Theorem:
    """The quantities of the theorem (AANG, appendix E, theorem E.5), and the bound they give.

    The bound is on |E[R_S − R]|, for losses in [0, 1] and SGD with step sizes α_t ≤ c / t. Losses
    of classes have no upper limit, and Δ, L and the β are estimates from below: read the bound's
    shape over λ_e, not its height.

    Attributes:
        distance: Δ of assumption A.1.
        lipschitz: L, of both losses.
        end_task_smoothness: β_e.
        auxiliary_smoothness: β_a.
        end_task_rows: N_e.
        auxiliary_rows: N_a.
        steps: T.
        step_constant: c.

    Examples:
        >>> from aang_plugin_diagnose import Theorem
        >>> theorem = Theorem(1.0, 2.0, 3.0, 3.0, 100, 300, steps=400, step_constant=0.1)
        >>> theorem.end_task_share
        0.25
        >>> round(theorem.bound(0.5), 3)
        0.073
        >>> theorem.least()[0]
        0.01
    """

    distance: float
    lipschitz: float
    end_task_smoothness: float
    auxiliary_smoothness: float
    end_task_rows: int
    auxiliary_rows: int
    steps: int
    step_constant: float

    @property
    def end_task_share(self) -> float:
        """r_e = N_e / N'."""
        return self.end_task_rows / (self.end_task_rows + self.auxiliary_rows)

    def bound(self, end_task_weight: float) -> float:
        """The bound at λ_e: the tighter one of the theorem's two."""
        return min(self.bounds(end_task_weight))

    def bounds(self, end_task_weight: float) -> tuple[float, float]:
        """The bound at λ_e for each pair (β̄, ρ); equation 1 simplifies the first."""
        own, other = end_task_weight, 1 - end_task_weight
        of_smoother, smoothness = own, self.end_task_smoothness
        if self.auxiliary_smoothness < self.end_task_smoothness:
            of_smoother, smoothness = other, self.auxiliary_smoothness
        both = own * self.end_task_smoothness + other * self.auxiliary_smoothness
        apart = (1 - of_smoother) * (self.distance + 2 * self.lipschitz)
        return (
            self._by(of_smoother * smoothness, apart, end_task_weight),
            self._by(both, 0.0, end_task_weight),
        )

    def _by(self, smoothness: float, apart: float, end_task_weight: float) -> float:
        """The bound for one pair of β̄ and ρ."""
        q = self.step_constant * smoothness
        total = self.end_task_rows + self.auxiliary_rows
        gamma = end_task_weight / self.end_task_share
        scale = self.lipschitz * self.step_constant
        first = 2 * gamma * self.lipschitz * scale / (total - gamma) + apart * scale
        powers = first ** (1 / (q + 1)) * (gamma * self.steps / total) ** (q / (q + 1))
        return float((1 + 1 / q) * powers)

    def least(self, *, equation_1: bool = False) -> tuple[float, float]:
        """The λ_e of `WEIGHTS` where the bound is least, and the bound there.

        Args:
            equation_1: look only at the pair that equation 1 simplifies. The other one always
                falls with λ_e.
        """
        bounds = [(self.bounds(w)[0] if equation_1 else self.bound(w), w) for w in WEIGHTS]
        value, weight = min(bounds)
        return weight, value

    def document(self) -> dict[str, Any]:
        """All of it as JSON values."""
        least = {"bound": self.least(), "equation_1": self.least(equation_1=True)}
        return {
            **asdict(self),
            "end_task_share": self.end_task_share,
            "bounds": [[weight, *self.bounds(weight)] for weight in WEIGHTS],
            "least": {
                name: {"end_task_weight": weight, "value": value}
                for name, (weight, value) in least.items()
            },
        }


def step_constant(config: TrainConfig) -> float:
    """The least c with α_t ≤ c / t over the steps of a training with these options."""
    settings = OptimizerSettings(
        config.lr, config.head_lr, warmup=config.warmup, schedule=config.schedule
    )
    factor = Optimization(nn.Linear(1, 1), [], settings, config.steps).schedule.lr_lambdas[0]
    return config.lr * max(t * factor(t - 1) for t in range(1, config.steps + 1))
