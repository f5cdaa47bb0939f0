"""The weighter grad-cosine: Du et al., Adapting Auxiliary Losses Using Gradient Similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    RegisterPrimitive,
    Signal,
    StepSignals,
    StepwiseWeighter,
    TaskCard,
    hookimpl,
    number_option,
    sample_size_option,
)

AANG_PLUGIN_API = 1


class GradCosine(StepwiseWeighter):
    """An objective has a weight while its cosine with the dev gradient is positive.

    Signals come after a step, so a cosine decides about the following steps, until the next one.
    The end task gets the weight that objectives lose.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        end_task_weight: λ_e if all objectives have a weight; they share the rest equally.
        n: number of objectives that a step trains; None for all of them.
    """

    signals: frozenset[Signal] = frozenset({"cosine"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        end_task_weight: float = 0.5,
        n: int | None = None,
    ) -> None:
        option, meaning = "weighter option end_task_weight", "a number from 0 to 1"
        self._rest = 1 - number_option(option, end_task_weight, meaning, low=0, high=1)
        self._end_task = end_task.name
        self._counts = {card.name: True for card in auxiliaries}
        self.sample_size = sample_size_option(n, auxiliaries)

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        shares = {name: self._rest / len(sampled) * self._counts[name] for name in sampled}
        return {self._end_task: max(0.0, 1 - sum(shares.values())), **shares}

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        self._counts.update({name: signals.cosine[name] > 0 for name in sampled})

    def weights(self) -> Mapping[str, float]:
        return self.coefficients(list(self._counts))

    def state_dict(self) -> dict[str, Any]:
        return {"counts": dict(self._counts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._counts = dict(state["counts"])


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register the weighter."""
    register("grad-cosine", "an objective counts while its cosine is positive", GradCosine)
