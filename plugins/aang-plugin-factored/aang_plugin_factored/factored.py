"""The weighter ``factored``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aang_core import (
    ConfigError,
    Signal,
    StepSignals,
    StepwiseWeighter,
    TaskCard,
    number_option,
    sample_size_option,
    softmax,
    whole_number_option,
)
from aang_plugin_factored.evening import Evening
from aang_plugin_factored.factors import Factors
from aang_plugin_factored.scaling import ReleasedScaling


class Factored(StepwiseWeighter):
    """AANG's weights: shared through the primitives, learned from the dev gradient v.

    AANG (Dery et al., ICLR 2023), section 5 and Algorithm 1. In each step, over the n sampled
    objectives K, w_k ∝ exp(W_All[k] + W_D[d] + W_T[t] + W_R[r] + W_O[o]) and L_total = λ_e L_E + (1
    − λ_e) Σ_k w_k L_k. Then W_All[k] += η cos(g_k, v), and each stage factor += η Σ cos(g_k, v)
    over the k in K that use it. λ_e is the first component of a softmax over two logits (primary,
    auxiliary), which move by η_s cos(g_E, v) and η_s cos(Σ_k w_k g_k, v).

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        lr: η; appendix D tries 1.0 and 0.1. In the few hundred steps of a small task 0.1 hardly
            moves the factors. If η and η_s are 0, nothing is measured.
        end_task_lr: η_s; appendix D tries 0.1 and 0.01. With 32 rows per step 0.1 drives λ_e
            towards 0 within 200 steps, whether the objectives help or not.
        n: number of objectives that are sampled for a step; None, or more than there are, for all.
        free: ``always`` trains the objectives that share the end task's pass in every step, besides
            the n that are sampled from the others; ``drawn`` samples them like the others. Draws by
            weight sample all of them.
        free_share: with ``always``, the part of the objectives' weight that these start from
            together; their W_All starts from the logit that gives it.
        end_task_weight: λ_e to start from.
        scaling: ``paper`` multiplies the losses as above; ``released`` as the authors' code does,
            see :class:`ReleasedScaling`, which leaves the end task a larger share.
        scaling_rows: number of rows in which ``released`` rounds up its shares.
        share: against weights that collapse, see :class:`aang_plugin_factored.evening.Evening`; the
            default does nothing.
        floor: likewise.
        evenness: likewise.
        draw: likewise.
        explore: likewise.

    Raises:
        ConfigError: an option is not a number or out of range, or ``released`` is requested for
            tasks that do not consist of four stages.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_plugin_factored.factored import Factored
        >>> cards = [TaskCard("a", {"output": "x"}), TaskCard("b", {"output": "y"})]
        >>> Factored(TaskCard("end"), cards).weights()
        {'end': 0.5, 'a': 0.25, 'b': 0.25}
    """

    signals: frozenset[Signal] = frozenset({"cosine"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 1.0,
        end_task_lr: float = 0.01,
        n: int | None = 3,
        free: Literal["always", "drawn"] = "always",
        free_share: float = 0.9,
        end_task_weight: float = 0.5,
        scaling: Literal["paper", "released"] = "paper",
        scaling_rows: int = 64,
        share: str = "sum",
        floor: float = 0.0,
        evenness: float = 0.0,
        draw: str = "evenly",
        explore: float = 0.1,
    ) -> None:
        self._end_task = end_task.name
        self._objectives = [card.name for card in auxiliaries]
        self._factors = Factors(auxiliaries)
        self._lr = number_option("weighter option lr", lr, low=0)
        self._end_task_lr = number_option("weighter option end_task_lr", end_task_lr, low=0)
        if not self._lr and not self._end_task_lr:
            # Weights that do not move need no signals.
            self.signals = frozenset()
        if free not in ("always", "drawn"):
            raise ConfigError(f"weighter option free is {free!r}; give always or drawn")
        if free == "always" and draw != "weights":
            self.always = tuple(card.name for card in auxiliaries if card.free)
        sampled = [name for name in self._objectives if name not in self.always]
        self.sample_size = sample_size_option(n, sampled)
        self._evening = Evening(
            *(share, floor, evenness, draw, explore), partly=self.sample_size < len(sampled)
        )
        between: Any = {"low": 0, "high": 1, "above_low": True, "below_high": True}
        number_option("weighter option free_share", free_share, **between)
        self._start(free_share, self.sample_size)
        weight = number_option("weighter option end_task_weight", end_task_weight, **between)
        self._primary = math.log(weight / (1 - weight))
        self._auxiliary = 0.0
        self._released = _scaling(scaling, scaling_rows, auxiliaries, self._factors)
        self.normalised = self._released is None
        if self._released is not None and (floor or draw != "evenly"):
            raise ConfigError(
                "weighter option scaling is 'released', which alone decides the weights of a step; "
                "leave out either floor and draw, or scaling"
            )

    def _start(self, share: float, sampled: int) -> None:
        """Give the objectives of every step ``share`` of the weight, beside ``sampled`` others.

        F of them with W_All = b, beside n others at 0, have F eᵇ / (F eᵇ + n) of it.
        """
        if not self.always or not sampled:
            return
        odds = share / (1 - share) * sampled / len(self.always)
        self._factors.start(self.always, math.log(odds))

    def sample_weights(self) -> Mapping[str, float] | None:
        if self._evening.by_weights:
            return self._evening.odds(self._factors.softmax(self._objectives))
        return None

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        if self._released is not None:
            return self._with_end_task(self._released.weights(sampled))
        return self._with_end_task(self._even(sampled))

    def _even(self, names: Sequence[str]) -> Mapping[str, float]:
        return self._evening.coefficients(self._factors.softmax(names))

    def _with_end_task(self, weights: Mapping[str, float]) -> Mapping[str, float]:
        """λ_e for the end task, and 1 − λ_e times ``weights`` for the objectives."""
        if not weights:
            return {self._end_task: 1.0}
        end_task_weight = self._end_task_weight()
        return {
            self._end_task: end_task_weight,
            **{name: (1 - end_task_weight) * weight for name, weight in weights.items()},
        }

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Take one step of gradient ascent on the factors and on λ_e's logits.

        As in META-TARTAN's Algorithm 1, the cosine itself serves as the gradient of a logit,
        without the derivative of the softmax.
        """
        if not sampled:
            return
        cosines = {name: signals.cosine[name] for name in sampled}
        pull = self._evening.pull(cosines, self._factors.softmax(sampled))
        self._factors.ascend(pull, self._lr, mean=self._evening.share == "mean")
        self._primary += self._end_task_lr * signals.cosine[self._end_task]
        self._auxiliary += self._end_task_lr * signals.auxiliary["cosine"]

    def weights(self) -> Mapping[str, float]:
        """λ_e, and 1 − λ_e shared among all objectives, whichever are sampled next.

        If objectives are drawn by weight, their shares are proportional to their odds. Objectives
        that are in every step count whole, and the others as often as they are drawn.
        """
        if self._evening.by_weights:
            return self._with_end_task(self.sample_weights() or {})
        if not self._objectives:
            return self._with_end_task({})
        shares = self._even(self._objectives)
        if self.always and self._evening.partly and self.sample_size is not None:
            drawn = self.sample_size / (len(shares) - len(self.always))
            seen = {n: w * (1 if n in self.always else drawn) for n, w in shares.items()}
            shares = {name: weight / math.fsum(seen.values()) for name, weight in seen.items()}
        return self._with_end_task(shares)

    def record(self) -> Mapping[str, Any]:
        return {
            "end_task_weight": self._end_task_weight(),
            "factors": self._factors.state_dict(),
            "logits": {"primary": self._primary, "auxiliary": self._auxiliary},
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "factors": self._factors.state_dict(),
            "logits": {"primary": self._primary, "auxiliary": self._auxiliary},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run over another space.
        """
        self._factors.load_state_dict(state["factors"])
        self._primary = float(state["logits"]["primary"])
        self._auxiliary = float(state["logits"]["auxiliary"])

    def _end_task_weight(self) -> float:
        """λ_e = softmax(primary, auxiliary)[0]."""
        logits = {"primary": self._primary, "auxiliary": self._auxiliary}
        return softmax(logits)["primary"]


def _scaling(
    scaling: str, rows: int, auxiliaries: Sequence[TaskCard], factors: Factors
) -> ReleasedScaling | None:
    """The released code's scaling; None for the paper's."""
    if scaling not in ("paper", "released"):
        raise ConfigError(
            f"weighter option scaling is {scaling!r}; give paper or released, which is that of "
            "the authors' code"
        )
    whole_number_option("weighter option scaling_rows", rows)
    return ReleasedScaling(auxiliaries, factors, rows) if scaling == "released" else None
