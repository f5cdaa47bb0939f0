"""Ways to keep the weights of ``factored`` from collapsing onto few objectives.

None of them is in AANG's paper, and none is on by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aang_core import ConfigError, number_option

DRAWS = ("evenly", "weights")
SHARES = ("sum", "mean")


@dataclass(frozen=True)
class Evening:
    """How strongly weights are pulled towards equality, and how objectives are drawn.

    Attributes:
        share: ``"sum"`` moves a stage factor by the cosines of all sampled objectives that use it,
            as AANG does; ``"mean"`` by their mean.
        floor: f; the weights of n sampled objectives become (1 − f) w_k + f/n.
        evenness: β, see :meth:`pull`.
        draw: ``"evenly"``, or ``"weights"`` for :meth:`odds`.
        explore: ε of :meth:`odds`.
        partly: whether a step trains fewer objectives than there are. If it trains all of them,
            nothing is drawn and ``draw`` has no effect.

    Raises:
        ConfigError: an option is out of range, or a floor is combined with draws by weight.
    """

    share: str
    floor: float
    evenness: float
    draw: str
    explore: float
    partly: bool

    def __post_init__(self) -> None:
        _one_of("share", self.share, SHARES)
        _one_of("draw", self.draw, DRAWS)
        number_option("weighter option floor", self.floor, low=0, high=1)
        number_option("weighter option evenness", self.evenness, low=0)
        number_option("weighter option explore", self.explore, low=0, high=1, above_low=True)
        if self.draw == "weights" and self.floor:
            raise ConfigError(
                f"weighter option floor is {self.floor!r}: with draw=weights the sampled "
                "objectives have equal weights already; leave floor out, and give explore, which "
                "is a floor for the draw"
            )

    @property
    def by_weights(self) -> bool:
        """Whether objectives are drawn with probabilities that follow their weights."""
        return self.draw == "weights" and self.partly

    def coefficients(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Loss weights of the sampled objectives, from their softmax.

        Drawn evenly, an objective gets (1 − f) w_k + f/n. Drawn by weight, it gets 1/n: the draw
        has applied the weights already, and multiplying by w_k would apply them twice. The expected
        coefficient is then π_k/n, where π_k is the probability of being among the n. For n = 1 that
        is q_k itself, so the expected loss is Σ q_k L_k over the whole space. For n > 1 it is close
        to q_k if n q_k is small, and never more than 1/n, since an objective cannot be drawn twice.
        """
        n = len(weights)
        if self.by_weights:
            return dict.fromkeys(weights, 1 / n)
        return {name: (1 - self.floor) * w + self.floor / n for name, w in weights.items()}

    def odds(self, weights: Mapping[str, float]) -> dict[str, float]:
        """q_k = (1 − ε) w_k + ε/m over all m objectives; draws are proportional to it.

        w is the softmax over the whole space. ε gives every objective a chance: its factors are
        measured only in the steps for which it is drawn.
        """
        m = len(weights)
        return {name: (1 - self.explore) * w + self.explore / m for name, w in weights.items()}

    def pull(self, cosines: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
        """The gradient of each sampled logit: cos_k + β (1/n − w_k).

        The second term is the gradient of −β KL(even ‖ w). The gradient of an entropy, −β w_k (ln
        w_k + H), vanishes where the weights have collapsed, which is where it is needed; this one
        is largest there. If cosines differ by less than β, the weights settle.
        """
        n = len(weights)
        return {
            name: cosine + self.evenness * (1 / n - weights[name])
            for name, cosine in cosines.items()
        }


def _one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"weighter option {option} is {value!r}; give {' or '.join(allowed)}")
