"""The factor vectors of an objective space."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aang_core import ConfigError, TaskCard, softmax

OWN = "all"
"""Key of W_All among the factor vectors; the paper's word for each objective's own factor."""


class Factors:
    """W_All and one vector per stage, by name; all start at zero (AANG, section 5) unless `start`
    says otherwise.

    Stages and primitives are those named in the cards. An objective without factors has only its
    own entry in W_All.

    Args:
        objectives: the cards.

    Raises:
        ConfigError: a stage is called "all".
    """

    def __init__(self, objectives: Sequence[TaskCard]) -> None:
        self._parts = {card.name: {**card.factors, OWN: card.name} for card in objectives}
        self._values: dict[str, dict[str, float]] = {OWN: {}}
        for card in objectives:
            if OWN in card.factors:
                raise ConfigError(
                    f"objective {card.name!r} has a stage called {OWN!r}, which is the name of "
                    "the objectives' own factors; rename the stage"
                )
            for stage, primitive in self._parts[card.name].items():
                self._values.setdefault(stage, {})[primitive] = 0.0

    def logit(self, objective: str) -> float:
        """W_All[k] + W_D[d] + W_T[t] + W_R[r] + W_O[o] (AANG, Algorithm 1)."""
        parts = self._parts[objective]
        return math.fsum(self._values[stage][primitive] for stage, primitive in parts.items())

    def value(self, stage: str, primitive: str) -> float:
        """The factor of one primitive of ``stage``."""
        return self._values[stage][primitive]

    def softmax(self, objectives: Iterable[str]) -> dict[str, float]:
        """w_k ∝ exp of the logit, normalised over ``objectives``."""
        return softmax({name: self.logit(name) for name in objectives})

    def start(self, objectives: Iterable[str], logit: float) -> None:
        """Let W_All of these objectives start from ``logit``."""
        self._values[OWN] |= dict.fromkeys(objectives, logit)

    def ascend(self, gradients: Mapping[str, float], lr: float, *, mean: bool = False) -> None:
        """Move every factor by ``lr`` times the gradient of the logits.

        A logit is a sum of factors, so each factor of an objective gets that objective's gradient,
        and a factor that several of them share gets the sum. This is how an objective that was not
        sampled still learns (AANG, section 5).

        Args:
            gradients: gradient of each logit, by objective.
            lr: the step size.
            mean: use the mean of the gradients instead of their sum, so that a primitive of many
                objectives moves no faster than one of few.
        """
        users = Counter(part for objective in gradients for part in self._parts[objective].items())
        for objective, gradient in gradients.items():
            for stage, primitive in self._parts[objective].items():
                share = gradient / users[stage, primitive] if mean else gradient
                self._values[stage][primitive] += lr * share

    def state_dict(self) -> dict[str, dict[str, float]]:
        """A copy of the factors: stage → primitive → value, "all" first."""
        return {stage: dict(values) for stage, values in self._values.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the values of ``state``.

        Raises:
            ConfigError: they belong to another space.
        """
        saved = {(stage, name) for stage, values in state.items() for name in values}
        own = {(stage, name) for stage, values in self._values.items() for name in values}
        if saved != own:
            odd = ", ".join(f"{stage} {name}" for stage, name in sorted(saved ^ own))
            raise ConfigError(
                "the saved factors belong to another space than this run's; they differ in: "
                f"{odd}. Continue with the space of the saved run"
            )
        self._values = {
            stage: {name: float(state[stage][name]) for name in values}
            for stage, values in self._values.items()
        }
