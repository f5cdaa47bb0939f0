"""The weighter ``gradnorm``."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aang_core import (
    Signal,
    StepSignals,
    StepwiseWeighter,
    TaskCard,
    number_option,
    restored_by_task,
    sample_size_option,
)

SMALLEST = 1e-3
"""Smallest w_k before they are normalised, so that no task is lost for good."""


class GradNorm(StepwiseWeighter):
    """Weights that bring gradients to lengths that follow how fast each task learns.

    GradNorm (Chen et al., ICML 2018), section 3 and Algorithm 1. G_k = ‖w_k g_k‖ is the length of a
    task's weighted gradient and r_k = (L_k / L_k(0)) / mean over the tasks its relative inverse
    training rate. L_k(0) is here the largest loss so far and not the first, which may be next to
    nothing if an objective has no target yet, such as a confident prediction. The weights descend
    on Σ_k |G_k − Ḡ r_k^α| (equation 2), with the target Ḡ r_k^α fixed, and are then normalised so
    that their mean is one.

    The paper takes g_k over the last shared layer to save time; here it is over the whole body,
    which costs nothing more. ∂/∂w_k is divided by the mean ‖g_k‖ of the step, so that η has no
    unit; the paper leaves this to Adam.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        lr: η of the weights; 0.025 in the paper.
        alpha: α, how strongly tasks that learn slowly are pulled up; the paper has 0.12 and 1.5.
        n: number of auxiliary tasks of a step, drawn anew each time; means are then over the tasks
            of the step. None for all of them, as in the paper.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import StepSignals, TaskCard
        >>> from aang_plugin_balance.gradnorm import GradNorm
        >>> weighter = GradNorm(TaskCard("end"), [TaskCard("a")], lr=0.1)
        >>> norm, loss = {"end": 1.0, "a": 3.0}, {"end": 2.0, "a": 2.0}
        >>> weighter.observe(["a"], StepSignals({}, {}, norm, {}, None, loss))
        >>> {name: round(weight, 3) for name, weight in weighter.weights().items()}
        {'end': 0.553, 'a': 0.447}
    """

    signals: frozenset[Signal] = frozenset({"norm", "loss"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 0.025,
        alpha: float = 1.5,
        n: int | None = None,
    ) -> None:
        self._end_task = end_task.name
        self._weights = {card.name: 1.0 for card in (end_task, *auxiliaries)}
        self._largest: dict[str, float] = {}
        self._lr = number_option("weighter option lr", lr, low=0)
        self._alpha = number_option("weighter option alpha", alpha, low=0)
        self.sample_size = sample_size_option(n, auxiliaries)

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return _shares(self._weights, [self._end_task, *sampled])

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Take one step on the weights of the tasks in the step, and normalise all of them."""
        norms = signals.norm
        mean_norm = _mean(norms.values())
        if mean_norm == 0:
            return
        lengths = {name: self._weights[name] * norm for name, norm in norms.items()}
        mean_length = _mean(lengths.values())
        rates = self._rates(signals.loss)
        for name, length in lengths.items():
            excess = length - mean_length * rates[name] ** self._alpha
            slope = math.copysign(norms[name] / mean_norm, excess) if excess else 0.0
            self._weights[name] = max(self._weights[name] - self._lr * slope, SMALLEST)
        mean_weight = _mean(self._weights.values())
        self._weights = {name: weight / mean_weight for name, weight in self._weights.items()}

    def _rates(self, losses: Mapping[str, float]) -> dict[str, float]:
        """r_k of every task of the step; 1 for all while no loss is above zero."""
        ratios = {}
        for name, loss in losses.items():
            largest = self._largest[name] = max(loss, self._largest.get(name, loss))
            ratios[name] = max(loss, 0.0) / largest if largest > 0 else 1.0
        mean = _mean(ratios.values())
        return {name: ratio / mean if mean > 0 else 1.0 for name, ratio in ratios.items()}

    def weights(self) -> Mapping[str, float]:
        return _shares(self._weights, self._weights)

    def record(self) -> Mapping[str, Any]:
        return {"largest_losses": dict(self._largest)}

    def state_dict(self) -> dict[str, Any]:
        return {"weights": dict(self._weights), "largest_losses": dict(self._largest)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._weights = restored_by_task(state["weights"], self._weights)
        self._largest = {name: float(loss) for name, loss in state["largest_losses"].items()}


def _mean(numbers: Any) -> float:
    found = [*numbers]
    return math.fsum(found) / len(found)


def _shares(weights: Mapping[str, float], tasks: Iterable[str]) -> dict[str, float]:
    """The weights of some tasks, divided by their sum."""
    chosen = {task: weights[task] for task in tasks}
    total = sum(chosen.values())
    return {task: weight / total for task, weight in chosen.items()}
