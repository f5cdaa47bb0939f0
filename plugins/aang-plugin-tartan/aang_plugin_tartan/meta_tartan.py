"""The weighter ``meta-tartan``."""

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
    softmax,
)


class MetaTartan(StepwiseWeighter):
    """One logit per task, moved by the cosine of its gradient with the dev gradient.

    META-TARTAN (TARTAN, section 3.2; Algorithm 1 in appendix A.3): α = softmax(w*, w_1, …), w* ← w*
    + η cos(g_E, v), w_i ← w_i + η cos(g_i, v). The model's step comes first, as in section 3.2 and
    in the authors' code; A.3 moves the weights before it. Heads get the weighted gradients, as in
    that code; in A.3 they get unweighted ones.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        lr: η; the paper tries 1e-1, 5e-2, 3e-2 and 1e-2.
        n: number of objectives that a step trains; None, or more than there are, for all of them.

    Raises:
        ConfigError: an option is not a number or out of range.

    Examples:
        >>> from aang_core import StepSignals, TaskCard
        >>> from aang_plugin_tartan.meta_tartan import MetaTartan
        >>> weighter = MetaTartan(TaskCard("end"), [TaskCard("a")], lr=1.0)
        >>> weighter.observe(["a"], StepSignals({"end": 1.0, "a": 0.0}, {}, {}, {}, 1.0))
        >>> round(weighter.weights()["end"], 3)  # 1 / (1 + e⁻¹)
        0.731
    """

    signals: frozenset[Signal] = frozenset({"cosine"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 0.1,
        n: int | None = None,
    ) -> None:
        self._end_task = end_task.name
        # A.3 starts all at 1/(n + 1); a common offset does not change the softmax.
        self._logits = {card.name: 0.0 for card in (end_task, *auxiliaries)}
        self._lr = number_option("weighter option lr", lr, low=0)
        # The paper trains every task in every step. Sampling is AANG's addition (its section 5)
        # for larger spaces; the softmax is then over the tasks of the step.
        self.sample_size = sample_size_option(n, auxiliaries)

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return self._softmax([self._end_task, *sampled])

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Take one step of gradient ascent on the logits of the tasks in the step."""
        for name in (self._end_task, *sampled):
            self._logits[name] += self._lr * signals.cosine[name]

    def weights(self) -> Mapping[str, float]:
        return self._softmax(self._logits)

    def record(self) -> Mapping[str, Any]:
        return {"logits": dict(self._logits)}

    def state_dict(self) -> dict[str, Any]:
        return {"logits": dict(self._logits)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._logits = restored_by_task(state["logits"], self._logits)

    def _softmax(self, names: Iterable[str]) -> dict[str, float]:
        return softmax({name: self._logits[name] for name in names})
