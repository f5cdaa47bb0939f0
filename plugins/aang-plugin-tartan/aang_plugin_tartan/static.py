"""The weighter ``static``."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from aang_core import (
    ConfigError,
    StepwiseWeighter,
    TaskCard,
    Workbench,
    flag_option,
    number_option,
    sample_size_option,
)


class Static(StepwiseWeighter):
    """Fixed weights: MT-TARTAN (TARTAN, section 3.1) and AANG's Static Multitask-TD (section 7.3).

    The first trains all objectives with λ_e = 1/(n + 1), which is the default. The second samples n
    of them each step, with weight 1/n each; λ_e = 0.5 is that of its code; the section names none.

    L_total = λ_e L_E + (1 − λ_e) Σ_k w_k L_k, with the w_k normalised over the objectives of the
    step. The weighter measures no signals, so a step costs as much as a plain multitask step.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        weights: w_k by objective, relative to each other; the default of each is 1. Zero leaves an
            objective out of the loss.
        end_task_weight: λ_e. The default is 1/(n + 1), so that the end task weighs as much as each
            of the n objectives does on average (TARTAN, section 4: "equalized task weights").
        n: number of objectives that a step trains; None, or more than there are, for all of them.
        alternate: instead of weighting both by λ_e, train either the end task alone, with
            probability λ_e, or the objectives alone, Σ_k w_k L_k. This is the dynamic sampling of
            AANG's section 4, for which Theorem 4.1 holds; the expected loss is the same.

    Raises:
        ConfigError: a weight is negative or not a number, or is given for an unknown objective.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_plugin_tartan.static import Static
        >>> Static(TaskCard("end"), [TaskCard("a")], end_task_weight=0.75).weights()
        {'end': 0.75, 'a': 0.25}
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        weights: Mapping[str, float] | None = None,
        end_task_weight: float | None = None,
        n: int | None = None,
        alternate: bool = False,
    ) -> None:
        self._end_task = end_task.name
        self._relative = {card.name: 1.0 for card in auxiliaries}
        self._relative.update(_objective_weights(weights or {}, end_task.name, self._relative))
        self.sample_size = sample_size_option(n, auxiliaries)
        self._alternate = flag_option("weighter option alternate", alternate)
        if end_task_weight is None:
            self._end_task_weight = 1 / (self.sample_size + 1)
        else:
            self._end_task_weight = number_option(
                "weighter option end_task_weight", end_task_weight, low=0, high=1
            )

    def draws(self, bench: Workbench) -> list[Mapping[str, float]]:
        draws = super().draws(bench)
        return [self._one_of_two(draw, bench) for draw in draws] if self._alternate else draws

    def _one_of_two(self, draw: Mapping[str, float], bench: Workbench) -> Mapping[str, float]:
        """The end task alone or the objectives alone, by their weights."""
        weight = draw[self._end_task]
        if float(torch.rand((), generator=bench.generator)) < weight:
            return {self._end_task: 1.0}
        return {n: 0.0 if n == self._end_task else w / (1 - weight) for n, w in draw.items()}

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        total = sum(self._relative[name] for name in sampled)
        if total == 0:
            return {self._end_task: 1.0, **dict.fromkeys(sampled, 0.0)}
        share = (1 - self._end_task_weight) / total
        return {
            self._end_task: self._end_task_weight,
            **{name: share * self._relative[name] for name in sampled},
        }

    def weights(self) -> Mapping[str, float]:
        return self.coefficients(list(self._relative))

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore: the weights are options."""


def _objective_weights(
    weights: Mapping[str, float], end_task: str, known: Mapping[str, float]
) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise ConfigError(
            f"weighter option weights is {weights!r}; give a mapping of objective to weight"
        )
    if end_task in weights:
        raise ConfigError(
            f"weighter option weights names the end task {end_task!r}; "
            "give its weight as end_task_weight"
        )
    for name in weights:
        if name not in known:
            raise ConfigError(
                f"weighter option weights names {name!r}, which is not an objective of this run; "
                f"there are: {', '.join(known)}"
            )
    return {
        name: number_option(f"weighter option weights[{name!r}]", weight, low=0)
        for name, weight in weights.items()
    }
