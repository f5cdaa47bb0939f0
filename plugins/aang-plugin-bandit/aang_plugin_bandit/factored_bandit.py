"""The weighter ``factored-bandit``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from aang_core import (
    ConfigError,
    TaskCard,
    Workbench,
    flag_option,
    number_option,
    whole_number_option,
)
from aang_plugin_bandit.beliefs import Beliefs
from aang_plugin_bandit.choices import LEVEL, OWN, SHARE, Choice, Choices
from aang_plugin_bandit.rounds import ScoredRounds

DRAWS = 256
"""Number of choices that the weights in the log are averaged over."""


class FactoredBandit(ScoredRounds):
    """Tries sets of objectives, and credits the gain in dev score to their primitives.

    A round takes one choice, an end-task weight λ and n objectives K. It trains for k steps with
    the coefficients c_E = λ and c_j = (1 − λ)/n, and measures the dev score R_b. The gain in units
    of the usual gain, y_b = (R_b − R_{b−1}) / s, is modelled as

        y_b = W_0 + W_λ[λ] + Σ_{j∈K} c_j (W_All[j] + W_D[d] + W_T[t] + W_R[r] + W_O[o]) + ε,

    with AANG's factors (Dery et al., ICLR 2023, section 5) as unknowns. The level W_0 is the gain
    of any round at this time of the training, so that objectives get no credit for being tried
    early. Every factor has an independent Gaussian, updated by Bayes' rule for a linear model. The
    next choice is the best one under one draw of all factors (Thompson sampling).

    With λ = 1 among the candidates, plain fine-tuning is one of the choices.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        k: steps per round.
        n: number of objectives in a set. A single one has all auxiliary rows, and all of the
            credit.
        end_task_weights: the candidates for λ.
        decay: γ, the share of the knowledge that fades with every round.
        prior: τ, the standard deviation that every factor starts from, in usual gains.
        noise: σ, the standard deviation of a round's gain around what its factors explain; 1 would
            mean that they explain nothing.
        dev_rows: number of dev rows that the score is measured on; None for all.
        rewind: restore the parameters if the dev score fell in a round. The optimiser's moments,
            the steps and the position in the rows are not restored.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_plugin_bandit.factored_bandit import FactoredBandit
        >>> cards = [TaskCard("a", {"output": "x"}), TaskCard("b", {"output": "y"})]
        >>> weighter = FactoredBandit(TaskCard("end"), cards, k=5, end_task_weights=[0.5])
        >>> weighter.weights()["end"]
        0.5
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        k: int = 10,
        n: int = 1,
        end_task_weights: Sequence[float] = (0.5, 0.75, 1.0),
        decay: float = 0.05,
        prior: float = 0.5,
        noise: float = 0.7,
        dev_rows: int | None = 256,
        rewind: bool = False,
    ) -> None:
        flag_option("weighter option rewind", rewind)
        super().__init__(k, dev_rows)
        self._end_task = end_task.name
        self._names = [card.name for card in auxiliaries]
        self._choices = Choices(
            auxiliaries,
            _candidates(end_task_weights),
            whole_number_option("weighter option n", n),
        )
        decay = number_option("weighter option decay", decay, low=0, high=1, below_high=True)
        self._beliefs = Beliefs(
            self._choices.factors,
            prior=number_option("weighter option prior", prior, low=1e-3, high=1e3),
            noise=number_option("weighter option noise", noise, low=1e-3, high=1e3),
            decay=decay,
        )
        self._gains = Gains(decay)
        self._rewind = rewind

    def round(self, bench: Workbench) -> None:
        """Train the best choice under a draw of the factors, and credit its gain to them.

        Raises:
            AangError: a dev score is not finite.
        """
        before = self.score_before(bench)
        (choice,) = self._choices.best(self._beliefs.draw(bench.generator))
        restore = bench.snapshot() if self._rewind else None
        score = self.score_after(bench, self._coefficients(choice))
        self._last = {}
        if score is None:
            return
        y = self._gains.in_usual_ones(score - before)
        self._beliefs.learn(self._choices.shares(choice), y)
        self._last = {"gain": score - before, "reward": y, "dev_score": score}
        if restore is not None and score < before:
            restore()
            self._last["rewound"] = True
        else:
            self._score = score

    def weights(self) -> Mapping[str, float]:
        """Expected coefficient of each task in the next round, over 256 draws.

        The draws are the same in every call and do not use the run's generator.
        """
        draws = self._beliefs.draw(torch.Generator().manual_seed(0), DRAWS)
        weights = dict.fromkeys([self._end_task, *self._names], 0.0)
        for choice in self._choices.best(draws):
            for name, coefficient in self._coefficients(choice).items():
                weights[name] += coefficient / DRAWS
        return weights

    def record(self) -> Mapping[str, Any]:
        factors, deviations = self._beliefs.means(), self._beliefs.deviations()
        return {
            "level": factors.pop(LEVEL[0])[LEVEL[1]],
            "end_task_weights": factors.pop(SHARE),
            # W_All comes first everywhere.
            "factors": {OWN: factors.pop(OWN, {}), **factors},
            "deviations": {
                stage: deviations[stage] for stage in deviations if stage not in (LEVEL[0], SHARE)
            },
            **self._last,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "beliefs": self._beliefs.state_dict(),
            "gains": self._gains.state_dict(),
            "score": self._score,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run over another space.
        """
        self._beliefs.load_state_dict(state["beliefs"])
        self._gains.load_state_dict(state["gains"])
        self._score = state["score"]

    def _coefficients(self, choice: Choice) -> dict[str, float]:
        return {
            self._end_task: choice.end_task_weight if choice.objectives else 1.0,
            **dict.fromkeys(choice.objectives, choice.coefficient),
        }


class Gains:
    """The root mean square of the gains so far, with less weight on older ones.

    A metric changes by tenths at first and by thousandths in the end, and by different amounts on
    different tasks. In units of the usual gain, rounds can be compared.

    Args:
        decay: γ; a gain of b rounds ago has the weight (1 − γ)^b.
    """

    def __init__(self, decay: float) -> None:
        self._kept = 1 - decay
        self._squares = 0.0
        self._count = 0.0

    def in_usual_ones(self, gain: float) -> float:
        """Divide the gain by the usual one, which includes it; 0 if no score has ever changed."""
        self._squares = self._kept * self._squares + gain**2
        self._count = self._kept * self._count + 1
        usual = math.sqrt(self._squares / self._count)
        return gain / usual if usual > 0 else 0.0

    def state_dict(self) -> dict[str, float]:
        """The weighted sum of the squared gains, and the sum of the weights."""
        return {"squares": self._squares, "count": self._count}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore saved gains."""
        self._squares, self._count = float(state["squares"]), float(state["count"])


def _candidates(weights: object) -> list[float]:
    """λ_e's candidates, each once, as numbers above 0 and at most 1."""
    if isinstance(weights, str) or not isinstance(weights, Sequence) or not weights:
        raise ConfigError(
            f"weighter option end_task_weights is {weights!r}; give a list of candidates for λ_e, "
            "such as [0.5, 1.0]"
        )
    numbers = [
        number_option("weighter option end_task_weights", weight, low=0, high=1, above_low=True)
        for weight in weights
    ]
    if len({f"{number:g}" for number in numbers}) < len(numbers):
        raise ConfigError(
            f"weighter option end_task_weights is {list(weights)}; give each candidate once"
        )
    return numbers
