"""What trainings beside sets of objectives say about primitives.

Like AANG's weights (section 4.2), estimates are factored: a primitive's estimate is shared by all
objectives that use it, so the score of one set says something about thousands of others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aang_core import STAGES, Space

SIZE = 3
"""Objectives drawn for a set; duplicates make it smaller."""
GUESS = 0.03
"""Noise of a score before anything is measured; it counts as one observation."""

Set = tuple[str, ...]
"""The names of objectives that are trained together."""
Floats = NDArray[np.float64]


class Outcome(NamedTuple):
    """A training beside a set: its score minus that of plain fine-tuning in the same rung."""

    objectives: Set
    rung: int
    gain: float


@dataclass(frozen=True)
class Estimates:
    """What outcomes say about primitives and sets.

    gain = c + Σ_p share_p β_p + u_set + noise. share_p is the share of the set's objectives that
    use the primitive p, which is its weight in the loss; c is what objectives do in general, u_set
    what the primitives do not explain. β and u are normal around zero (ridge regression), β as wide
    as the noise. The noise of the plain training is in every difference of its rung.

    Attributes:
        space: the space that sets are drawn from.
        sets: the sets with outcomes.
        mean: of c, β and u, ``[1 + P + M]``.
        covariance: of the same.
    """

    space: Space
    sets: Sequence[Set]
    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, space: Space, outcomes: Sequence[Outcome]) -> "Estimates":
        """Estimate from all outcomes so far; without any, all are equally good."""
        sets = list(dict.fromkeys(outcome.objectives for outcome in outcomes))
        size = 1 + len(_primitives(space)) + len(sets)
        spread = np.ones(size)
        # The data alone decide what objectives do in general; a set is mostly its primitives.
        spread[0], spread[size - len(sets) :] = 100, 0.25
        rows = np.array([_row(space, sets, o.objectives) for o in outcomes]).reshape(-1, size)
        rungs = np.array([outcome.rung for outcome in outcomes])
        noise = np.eye(len(outcomes)) + (rungs[:, None] == rungs)
        gains = np.array([outcome.gain for outcome in outcomes])
        whole = np.linalg.inv((rows * spread) @ rows.T + noise)
        taken = (rows * spread).T @ whole
        variance = (gains @ whole @ gains + GUESS**2) / (len(gains) + 1)
        covariance = variance * (np.diag(spread) - taken @ (rows * spread))
        return cls(space, sets, taken @ gains, covariance)

    def value(self, objectives: Set) -> float:
        """The gain over plain fine-tuning that a set is expected to bring."""
        return float(_row(self.space, self.sets, objectives) @ self.mean)

    def drawn(self, generator: np.random.Generator, number: int, kept: Sequence[Set]) -> list[Set]:
        """Add sets to the kept ones, up to a number; fewer if the space has no more.

        Each objective of a set is the best one under estimates drawn from their distribution
        (Thompson sampling): primitives are tried as often as they are likely to be the best.
        """
        names = [objective.name for objective in self.space.objectives]
        own = slice(1, 1 + len(_primitives(self.space)))
        shares = np.array([_row(self.space, (), (name,))[own] for name in names])
        sets = dict.fromkeys(kept)
        for _ in range(100 * number):
            if len(sets) >= number:
                break
            drawn = generator.multivariate_normal(
                self.mean[own], self.covariance[own, own], size=SIZE, method="eigh"
            )
            best = (drawn @ shares.T).argmax(axis=1)
            sets[tuple(names[i] for i in sorted(set(best.tolist())))] = None
        return list(sets)

    def table(self) -> list[dict[str, Any]]:
        """The estimate of each primitive with its 95% interval, in the order of the stages.

        That of a primitive is the gain of a set whose objectives all use it, over that of sets in
        general, which is the first row.
        """
        wide = 1.96 * np.sqrt(self.covariance.diagonal())
        named = [("", "objectives in general"), *_primitives(self.space)]
        return [
            {"stage": s, "primitive": p, "gain": float(m), "interval": [float(m - w), float(m + w)]}
            for (s, p), m, w in zip(named, self.mean, wide, strict=False)
        ]

    def lines(self) -> list[str]:
        """The table for people, in points."""
        width = max(len(row["primitive"]) for row in self.table())
        return [
            f"  {row['stage']:<14} {row['primitive']:<{width}} {100 * row['gain']:+6.2f} "
            f"[{100 * row['interval'][0]:+.2f}, {100 * row['interval'][1]:+.2f}]"
            for row in self.table()
        ]


def _primitives(space: Space) -> list[tuple[str, str]]:
    return [(stage, primitive.key) for stage in STAGES for primitive in space.stages[stage]]


def _row(space: Space, sets: Sequence[Set], objectives: Set) -> Floats:
    """The regressors of a set: 1, the share of each primitive, and which of the sets it is."""
    used = [list(zip(STAGES, name.split("/"), strict=True)) for name in objectives]
    shares = [np.mean([primitive in one for one in used]) for primitive in _primitives(space)]
    return np.array([1.0, *shares, *(objectives == one for one in sets)])
