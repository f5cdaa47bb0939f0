"""Ways to keep the weights of ``factored`` from running into one corner.

None of them is in AANG's paper, and none is on by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aang_core import ConfigError, number_option

DRAWS = ("evenly", "weights")
SHARES = ("sum", "mean")


@dataclass(frozen=True)
class Evening:
    """How much the weights of objectives are held together, and how objectives are drawn.

    Args:
        share: ``"sum"`` moves a stage factor by the cosines of all sampled objectives that use it,
            as AANG does; ``"mean"`` by their mean.
        floor: f; the weights of n sampled objectives become (1 − f) w_k + f/n.
        evenness: β, see :meth:`pull`.
        draw: ``"evenly"``, or ``"weights"`` for :meth:`odds`.
        explore: ε of :meth:`odds`.
        partly: whether a step trains fewer objectives than there are. Where it trains all of them
            there is no draw, and ``draw`` says nothing.

    Raises:
        ConfigError: an option is out of its range, or a floor is given where weights are drawn by.
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
        number_option("weighter option floor", self.floor, "a number from 0 to 1", low=0, high=1)
        number_option(
            "weighter option evenness", self.evenness, "a number that is not negative", low=0
        )
        number_option(
            "weighter option explore",
            self.explore,
            "a number above 0 and at most 1, the part of the draw that is even",
            low=0,
            high=1,
            above_low=True,
        )
        if self.draw == "weights" and self.floor:
            raise ConfigError(
                f"weighter option floor is {self.floor!r}: with draw=weights the sampled "
                "objectives have equal weights already; leave floor out, and give explore, which "
                "does for the draw what floor does for the weights"
            )

    @property
    def by_weights(self) -> bool:
        """Whether objectives are drawn by their weights."""
        return self.draw == "weights" and self.partly

    def coefficients(self, weights: Mapping[str, float]) -> dict[str, float]:
        """What the sampled objectives are weighted by, from their softmax.

        Drawn evenly, (1 − f) w_k + f/n. Drawn by their weights, 1/n each: the draw has weighted
        them, and to multiply them by w_k besides would count it twice. The expected coefficient is
        then π_k/n, where π_k is the probability to be among the n. For n = 1 that is q_k itself, so
        the expected loss is Σ q_k L_k over the whole space; for n > 1 it is nearly q_k where
        n q_k is small, and never more than 1/n, since an objective cannot be drawn twice.
        """
        n = len(weights)
        if self.by_weights:
            return dict.fromkeys(weights, 1 / n)
        return {name: (1 - self.floor) * w + self.floor / n for name, w in weights.items()}

    def odds(self, weights: Mapping[str, float]) -> dict[str, float]:
        """q_k = (1 − ε) w_k + ε/m over all m objectives, what the draw is in proportion to.

        w is the softmax over the whole space. ε keeps every objective in the running: its factors
        are only measured in the steps that it is drawn for.
        """
        m = len(weights)
        return {name: (1 - self.explore) * w + self.explore / m for name, w in weights.items()}

    def pull(self, cosines: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
        """The gradient of each sampled logit: cos_k + β (1/n − w_k).

        The second term is the gradient of −β KL(even ‖ w). That of an entropy, −β w_k (ln w_k + H),
        dies out in the corner that it should lead out of; this one is largest there. Where cosines
        differ by less than β the weights come to rest.
        """
        n = len(weights)
        return {
            name: cosine + self.evenness * (1 / n - weights[name])
            for name, cosine in cosines.items()
        }


def _one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"weighter option {option} is {value!r}; give {' or '.join(allowed)}")
