"""The weighter ``autosem``."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import TaskCard, Workbench, number_option
from aang_plugin_bandit.beta_arms import BetaArms
from aang_plugin_bandit.rounds import ScoredRounds


class AutoSem(ScoredRounds):
    """Chooses the task to train next by how often the dev score did not fall after it.

    The first stage of AutoSeM (Guo, Pasunuru and Bansal, NAACL 2019,
    https://arxiv.org/abs/1904.04153): a non-stationary bandit with Bernoulli rewards whose arms are
    the tasks, including the end task. Every arm k has a Beta distribution over its utility θ_k. A
    round draws θ̂_k ~ Beta(α_k, β_k) for every arm, trains the task with the largest for k steps,
    and is rewarded if the dev score R_b is at least R_{b−1}. Then

        (α_j, β_j) ← (1 − γ)(α_j, β_j) + γ(α_0, β_0) for every arm j, and (α_k, β_k) += (r, 1 − r).

    As published, a round trains a single task, and the end task only when it is drawn. With
    ``end_task_weight`` the end task is trained in the rounds of other tasks as well.

    The authors' code differs in two points. It compares the first score with zero, so that the
    first round is always rewarded, and it begins with the end task. Here the first round is
    compared with the model before it, and its task is drawn like all others. The second stage of
    AutoSeM tunes the mix of the selected tasks and trains the model once for every mix that it
    tries; ``aang compare`` with the weights of ``static`` does that.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        k: steps per round.
        decay: γ; the authors' code has 0.3, which remembers about three rounds. Use less for dozens
            of objectives.
        prior: α_0 = β_0, at least 0.1; 1 is the uniform distribution.
        end_task_weight: λ_e in the rounds of other tasks; 0 as published.
        dev_rows: number of dev rows that the reward is measured on; None for all.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_plugin_bandit.autosem import AutoSem
        >>> weighter = AutoSem(TaskCard("end"), [TaskCard("a"), TaskCard("b")], k=5)
        >>> weighter.weights()["a"] == weighter.weights()["b"]
        True
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        k: int = 10,
        decay: float = 0.3,
        prior: float = 1.0,
        end_task_weight: float = 0.0,
        dev_rows: int | None = 256,
    ) -> None:
        super().__init__(k, dev_rows)
        self._end_task = end_task.name
        self._end_task_weight = number_option(
            "weighter option end_task_weight", end_task_weight, low=0, high=1, below_high=True
        )
        self._arms = BetaArms(
            [end_task.name, *(card.name for card in auxiliaries)],
            prior=number_option("weighter option prior", prior, low=0.1),
            decay=number_option("weighter option decay", decay, low=0, high=1),
        )

    def round(self, bench: Workbench) -> None:
        """Draw a task, train it for k steps, and check whether the dev score fell.

        Raises:
            AangError: a dev score is not finite.
        """
        before = self.score_before(bench)
        arm = self._arms.draw(bench.generator)
        score = self.score_after(bench, self._coefficients(arm))
        self._last = {"arm": arm}
        if score is None:
            return
        self._last |= {"reward": int(score >= before), "dev_score": score}
        self._arms.reward(arm, score >= before)
        self._score = score

    def weights(self) -> Mapping[str, float]:
        """Expected coefficient of each task in the next round."""
        weights = {
            name: (1 - self._end_task_weight) * chance
            for name, chance in self._arms.chances().items()
        }
        weights[self._end_task] += self._end_task_weight
        return weights

    def record(self) -> Mapping[str, Any]:
        return {"utilities": self._arms.utilities(), **self._last}

    def state_dict(self) -> dict[str, Any]:
        return {"arms": self._arms.state_dict(), "score": self._score}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._arms.load_state_dict(state["arms"])
        self._score = state["score"]

    def _coefficients(self, arm: str) -> dict[str, float]:
        if arm == self._end_task:
            return {arm: 1.0}
        return {self._end_task: self._end_task_weight, arm: 1 - self._end_task_weight}
