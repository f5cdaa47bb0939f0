"""Calibrated probabilities, and ensembles of several models."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aang_plugin_best.board import Board, Logits, chance_of

Member = tuple[str, int]
"""A candidate and its seed."""

Probabilities = NDArray[np.float64]
"""``[N, C]``."""

MOST_PICKS = 10
"""The most picks that an ensemble averages; a model may be picked several times."""
MOST_MODELS = 3
"""Different models in an ensemble: each is trained on all rows, and runs on every text."""
SURE = 2 / 3
"""An ensemble of several candidates has to be ahead with this probability on rows that did not
choose it."""
BINS = 15


def probabilities_of(logits: Logits, temperature: float = 1.0) -> Probabilities:
    """The softmax of logits ``[N, C]`` divided by a temperature; rows sum to one in float64."""
    scaled = logits.astype(np.float64) / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    found: Probabilities = powers / powers.sum(axis=1, keepdims=True)
    return found


def temperature_of(logits: Logits, truth: NDArray[np.int64]) -> float:
    """The temperature at which the truth is most likely (Guo et al., 2017, section 4.2).

    Targets are smoothed by one row of each class, as in Platt's scaling (1999, section 2.2): over
    rows without a single error, every probability would otherwise become 0 or 1.

    Args:
        logits: ``[N, C]``, of rows that the model was not trained on.
        truth: the classes, ``[N]``.
    """
    from scipy.optimize import minimize_scalar

    rows, classes = logits.shape
    smoothed = (np.eye(classes)[truth] * rows + 1) / (rows + classes)

    def loss(log_temperature: float) -> float:
        return -float((smoothed * logs_of(probabilities_of(logits, np.exp(log_temperature)))).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))


def calibration_error(probabilities: Probabilities, truth: NDArray[np.int64]) -> float:
    """Expected calibration error of the predicted class, in 15 bins of equal width (Guo et al.)."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == b).mean() * abs(right[bins == b].mean() - sure[bins == b].mean())
        for b in np.unique(bins)
    ]
    return float(sum(gaps))


def mixed(of: Mapping[Member, Probabilities], members: Mapping[Member, int]) -> Probabilities:
    """The mean of the members' probabilities, each as often as it was picked."""
    found: Probabilities = np.average(
        [of[member] for member in members], axis=0, weights=list(members.values())
    )
    return found


@dataclass(frozen=True)
class Ensemble:
    """Several models together.

    Attributes:
        members: how often each model was picked, over all rows.
        score: its score on all rows, each fold's by members that the other folds picked.
        single: the score of the best single model, picked in the same way.
        chance: the probability that it is really ahead of that model.
        confirmed: whether it is.
        probabilities: those behind ``score``, ``[N, C]``.
    """

    members: Mapping[Member, int]
    score: float
    single: float
    chance: float
    probabilities: Probabilities

    @property
    def confirmed(self) -> bool:
        """Whether rows that did not choose it say that it is better."""
        return len(self.members) > 1 and self.score > self.single and self.chance >= SURE

    def document(self) -> dict[str, Any]:
        """Everything but the probabilities, as JSON holds it."""
        return {
            "members": [[*member, times] for member, times in self.members.items()],
            "score": self.score,
            "single": self.single,
            "chance": self.chance,
            "confirmed": self.confirmed,
        }


def ensemble(board: Board, candidates: Sequence[str]) -> Ensemble:
    """Greedy selection from all models that have predicted every row (Caruana et al., 2004).

    An ensemble looks better than it is on the rows that chose it. So it is scored on each fold with
    members that the other folds have picked, beside the best single model, picked the same way.

    Args:
        board: the predictions.
        candidates: those to pick from; at least one has predicted every row.
    """
    rows = board.rows
    of = {
        (name, seed): probabilities_of(board.logits(name, seed))
        for name in candidates
        for seed in board.complete(name)
    }
    whole = np.ones(len(rows.truth), dtype=bool)
    several, single = np.empty_like(next(iter(of.values()))), np.empty_like(next(iter(of.values())))
    for k in np.unique(rows.folds):
        held_out = rows.folds == k
        picked = _picks(board, of, ~held_out)
        several[held_out] = mixed(of, picked)[held_out]
        single[held_out] = of[next(iter(picked))][held_out]
    scores = [board.score(rows.truth, logs_of(p)) for p in (several, single)]
    samples = [board.resampled(logs_of(p), whole) for p in (several, single)]
    chance = chance_of(scores[0] - scores[1], samples[0] - samples[1], board.spread(whole))
    return Ensemble(_picks(board, of, whole), scores[0], scores[1], chance, several)


def _picks(
    board: Board, of: Mapping[Member, Probabilities], rows: NDArray[np.bool_]
) -> Counter[Member]:
    """Repeatedly add the model that makes the mean best on some rows; the best one comes first."""
    truth = board.rows.truth[rows]
    total = np.zeros_like(next(iter(of.values()))[rows])
    picked: list[Member] = []
    scores: list[float] = []
    for _ in range(MOST_PICKS):
        different = dict.fromkeys(picked)  # a set has another order in every process
        able = different if len(different) == MOST_MODELS else of
        found = {m: board.score(truth, logs_of(total + of[m][rows])) for m in able}
        best = max(found, key=lambda member: found[member])
        picked.append(best)
        scores.append(found[best])
        total = total + of[best][rows]
    return Counter(picked[: int(np.argmax(scores)) + 1])


def logs_of(probabilities: Probabilities) -> Logits:
    """Logarithms, which are logits of the same probabilities: float32 ``[N, C]``."""
    logs: Logits = np.log(probabilities.clip(1e-12)).astype(np.float32)
    return logs
