"""Every candidate's predictions for rows that it was not trained on, and which one is ahead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from aang.task_types.metrics import Metric, shown_score
from numpy.typing import NDArray

from aang_plugin_best.rows import Rows

RESAMPLES = 2000
"""Bootstrap samples of the rows behind every interval and every probability."""

Logits = NDArray[np.float32]


@dataclass
class Predictions:
    """The predictions of one candidate with one seed.

    Attributes:
        steps: the training steps after which it predicted, ascending, ``[E]``; 0 for a
            candidate without steps.
        logits: float32 ``[E, N, C]``; NaN for rows of folds that are not trained yet.
    """

    steps: tuple[int, ...]
    logits: Logits

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Which rows have a prediction, ``[N]``."""
        known: NDArray[np.bool_] = ~np.isnan(self.logits[0, :, 0])
        return known


@dataclass
class Board:
    """All predictions so far, by candidate and seed.

    How long to train is a choice, too. A row's prediction is taken after the number of steps that
    is best on the other folds, so that its own label has no part in it.

    Attributes:
        rows: the labelled rows.
        metric: the score that decides.
        found: the predictions.
    """

    rows: Rows
    metric: Metric
    found: dict[str, dict[int, Predictions]] = field(default_factory=dict)

    def add(
        self, name: str, seed: int, steps: Sequence[int], fold: int | None, logits: Logits
    ) -> None:
        """Add predictions.

        Args:
            name: the candidate.
            seed: its seed.
            steps: the steps after which it predicted, ``[E]``.
            fold: the fold whose rows were predicted, in their order; None for all rows.
            logits: float32 ``[E, n, C]``.
        """
        seeds = self.found.setdefault(name, {})
        if seed not in seeds:
            shape = len(steps), len(self.rows.truth), logits.shape[-1]
            seeds[seed] = Predictions(tuple(steps), np.full(shape, np.nan, dtype=np.float32))
        whole = seeds[seed].logits
        chosen = slice(None) if fold is None else self.rows.folds == fold
        whole[:, chosen] = logits

    def complete(self, name: str) -> list[int]:
        """The seeds with which a candidate has predicted every row."""
        return [s for s, of in self.found.get(name, {}).items() if of.rows.all()]

    def of_folds(self, count: int) -> "Board":
        """The board over the rows of the first ``count`` folds."""
        kept = self.rows.folds < count
        found = {
            name: {s: Predictions(of.steps, of.logits[:, kept]) for s, of in seeds.items()}
            for name, seeds in self.found.items()
        }
        return Board(self.rows.of_folds(count), self.metric, found)

    def shared(self, names: Sequence[str]) -> "Board":
        """The board over the folds that all of these candidates have predicted.

        Folds that only one of them has predicted would choose the steps of that one alone.
        """
        return self.of_folds(int(self.rows.folds[self.predicted(names)].max()) + 1)

    def predicted(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """The rows that all of these candidates have predicted with their first seed, ``[N]``."""
        first = np.stack([next(iter(self.found[name].values())).rows for name in names])
        every: NDArray[np.bool_] = np.all(first, axis=0, keepdims=True)[0]
        return every

    def steps(self, name: str, rows: NDArray[np.bool_]) -> int:
        """The index of the number of steps that is best for a candidate on these rows.

        It is best over all seeds that have predicted them; ties go to the longer training.
        """
        seeds = [of for of in self.found[name].values() if of.rows[rows].all()]
        count = len(seeds[0].steps)
        if count == 1 or not rows.any():
            return count - 1
        truth = self.rows.truth[rows]
        scores = [
            np.mean([self.score(truth, of.logits[e, rows]) for of in seeds]) for e in range(count)
        ]
        return count - 1 - int(np.argmax(scores[::-1]))

    def liked_steps(self, name: str) -> int:
        """The number of steps that is best for a candidate over all its folds together."""
        first = next(iter(self.found[name].values()))
        return first.steps[self.steps(name, first.rows)]

    def score(self, truth: NDArray[np.int64], logits: Logits) -> float:
        """The metric of logits ``[n, C]``."""
        found = self.rows.kind.scores(torch.from_numpy(truth), torch.from_numpy(logits))
        return float(found[self.metric])

    def logits(self, name: str, seed: int) -> Logits:
        """Out-of-fold logits ``[N, C]``, each fold's after the steps best on the other folds."""
        of, folds = self.found[name][seed], self.rows.folds
        result: Logits = of.logits[-1].copy()
        for k in np.unique(folds[of.rows]):
            others = of.rows & (folds != k)
            result[folds == k] = of.logits[self.steps(name, others), folds == k]
        return result

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """How often each bootstrap sample has each row, ``[R, N]``; groups are drawn whole."""
        generator = np.random.default_rng(0)
        groups = self.rows.groups
        number = int(groups.max()) + 1
        drawn = generator.multinomial(number, np.full(number, 1 / number), size=RESAMPLES)
        times: NDArray[np.float64] = drawn[:, groups].astype(np.float64)
        return times

    def resampled(self, logits: Logits, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The metric of every bootstrap sample of some rows, ``[R]``."""
        found = self.rows.kind.resampled(
            torch.from_numpy(self.rows.truth[rows]),
            torch.from_numpy(logits[rows]),
            torch.from_numpy(self.counts[:, rows]),
        )
        values: NDArray[np.float64] = found[self.metric].numpy()
        return values

    def spread(self, rows: NDArray[np.bool_], share: float = 1.0) -> float:
        """The factor by which scores vary more than a bootstrap of some rows, a mask ``[N]``, says.

        Other training rows would make other models, and the folds' models share most of theirs
        (Nadeau and Bengio, 2003). It is 1.5 with all of five folds, and more for models that were
        trained on a share of the rows outside their fold.
        """
        folds = len(np.unique(self.rows.folds[rows]))
        return math.sqrt(1 + folds / (share * (self.rows.count - 1)))

    def scores(self, names: Sequence[str]) -> dict[str, float]:
        """The mean score of each candidate on the rows that all of them have predicted."""
        rows = self.predicted(names)
        truth = self.rows.truth[rows]
        return {
            name: float(
                np.mean([self.score(truth, one[rows]) for one in self._of_seeds(name, rows)])
            )
            for name in names
        }

    def _of_seeds(self, name: str, rows: NDArray[np.bool_]) -> list[Logits]:
        """Out-of-fold logits ``[N, C]`` of every seed that has predicted all of these rows."""
        seeds = self.found[name].items()
        return [self.logits(name, seed) for seed, of in seeds if of.rows[rows].all()]

    def standing(self, names: Sequence[str]) -> "list[Standing]":
        """How the candidates compare on the rows that all of them have predicted, best first.

        A bootstrapped score is the mean over a candidate's seeds: one model will be trained, and
        which seed it gets is chance.
        """
        rows = self.predicted(names)
        truth = self.rows.truth[rows]
        logits = {name: self._of_seeds(name, rows) for name in names}
        # Of few groups, a sample may have none that is predicted: no row, and so no score.
        some = self.counts[:, rows].any(axis=1)
        samples = {
            name: np.mean([self.resampled(one, rows)[some] for one in of], axis=0)
            for name, of in logits.items()
        }
        best = np.stack([samples[name] for name in names]).max(axis=0)
        spread = self.spread(rows)
        found = []
        for name, of in logits.items():
            score = float(np.mean([self.score(truth, one[rows]) for one in of]))
            found.append(
                Standing(
                    name,
                    score,
                    interval_of(score, samples[name], spread),
                    # A tie with the best counts, too: one of the tied will be chosen.
                    float(np.mean(samples[name] == best)),
                    len(of),
                    int(rows.sum()),
                    samples[name],
                    spread,
                )
            )
        return sorted(found, key=lambda one: -one.score)


def interval_of(score: float, samples: NDArray[np.float64], spread: float) -> tuple[float, float]:
    """The 95% interval of a score, from its bootstrap samples ``[R]`` and their spread."""
    low, high = score + spread * (np.quantile(samples, (0.025, 0.975)) - score)
    return max(0.0, float(low)), min(1.0, float(high))


def chance_of(ahead: float, samples: NDArray[np.float64], spread: float) -> float:
    """The probability that a difference is really above zero, from its samples and their spread.

    A difference of zero counts half.
    """
    return float(np.mean(np.heaviside(ahead + spread * (samples - ahead), 0.5)))


@dataclass(frozen=True)
class Standing:
    """How one candidate does.

    Attributes:
        name: the candidate.
        score: its mean score over seeds.
        interval: the 95% interval.
        chance: the share of bootstrap samples in which no other one is ahead of it.
        seeds: how many seeds the score is the mean of.
        rows: how many rows it is over.
        samples: its score in each bootstrap sample, ``[R]``, the same samples for all.
        spread: the factor by which scores vary more than the samples.
    """

    name: str
    score: float
    interval: tuple[float, float]
    chance: float
    seeds: int
    rows: int
    samples: NDArray[np.float64] = field(repr=False, compare=False)
    spread: float

    def ahead_of(self, other: "Standing") -> float:
        """The share of bootstrap samples in which it is ahead of another one of the same list."""
        return float(np.mean(self.samples > other.samples))

    def better_than(self, other: "Standing") -> float:
        """The probability that it is really ahead of another one of the same list."""
        ahead = self.score - other.score
        return chance_of(ahead, self.samples - other.samples, self.spread)

    def document(self) -> dict[str, Any]:
        """Everything but the samples, as JSON holds it."""
        hidden = ("samples", "spread")
        return {name: value for name, value in vars(self).items() if name not in hidden}

    def text(self, metric: Metric) -> str:
        """The standing as a line for people."""
        seeds = "" if self.seeds == 1 else f", mean of {self.seeds} seeds"
        score = shown_score(self.score, metric, self.interval)
        return f"{self.name:<16} {score}, best or level in {self.chance:.0%} of samples{seeds}"
