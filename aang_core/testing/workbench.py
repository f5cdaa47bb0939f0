"""A workbench that trains nothing."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from aang_core.tasks.weighting import DevLossAlong, Signal, StepSignals, Update, mean_signals

Measure = Callable[[Mapping[str, float]], StepSignals]
"""Signals of a step, given its coefficients."""


@dataclass(frozen=True)
class RecordedUpdate:
    """An update of nothing."""

    tasks: tuple[str, ...]


class RecordingWorkbench:
    """Records every step that a weighter asks for and answers with made-up signals.

    end_task, auxiliaries: names of the tasks.
    seed: of the samples and the generator, and of the signals where ``measure`` does not give them.
    score: what to answer to :meth:`dev_score`, given the coefficients of the last step; a random
        number for None.
    steps: optimiser steps of the run, which :meth:`step` uses up.
    measure: what to answer to a step; :meth:`random_signals` if None.
    measure_every: answer None to all but each m-th step, as a trainer that saves on signals does.
    draws_per_step: how many draws a step is to be made of.

    samples: what each call of :meth:`sample` gave. sample_weights: the weights that it was given.
    dev_rows: the rows that each call of :meth:`dev_score` was given. coefficients: of each draw of
        each step.
    signals: what each call of :meth:`step` or :meth:`step_over` was given. trials: the coefficients
        of each call of :meth:`trial`. applied: the tasks and coefficients of each call of
        :meth:`apply`.
    """

    def __init__(
        self,
        end_task: str,
        auxiliaries: Sequence[str],
        *,
        seed: int = 0,
        measure: Measure | None = None,
        measure_every: int = 1,
        draws_per_step: int = 1,
        score: Callable[[Mapping[str, float]], float] | None = None,
        steps: int = 10**9,
    ) -> None:
        self.end_task = end_task
        self.draws_per_step = draws_per_step
        self.generator = torch.Generator().manual_seed(seed)
        self.samples: list[tuple[str, ...]] = []
        self.sample_weights: list[Mapping[str, float] | None] = []
        self.dev_rows: list[int | None] = []
        self.coefficients: list[dict[str, float]] = []
        self.signals: list[frozenset[Signal]] = []
        self.trials: list[dict[str, float]] = []
        self.applied: list[list[tuple[tuple[str, ...], float]]] = []
        self._auxiliaries = list(auxiliaries)
        self._random = random.Random(seed)
        self.measure = measure or self.random_signals
        self._measure_every = measure_every
        self._steps = 0
        self._score = score
        self._budget = steps

    @property
    def steps_left(self) -> int:
        return max(self._budget - self._steps, 0)

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        self.sample_weights.append(None if weights is None else dict(weights))
        if n is None:
            chosen = self._auxiliaries
        elif weights is None:
            chosen = self._random.sample(self._auxiliaries, n)
        else:
            # The n that an exponential clock of rate weight reaches first.
            clocks = {
                name: self._random.expovariate(1.0) / weights[name]
                for name in self._auxiliaries
                if weights[name] > 0
            }
            chosen = sorted(clocks, key=clocks.__getitem__)[:n]
        self.samples.append(tuple(chosen))
        return self.samples[-1]

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        return self.step_over([coefficients], signals)

    def step_over(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal]
    ) -> StepSignals | None:
        self.coefficients += map(dict, draws)
        self.signals.append(signals)
        self._steps += 1
        if not signals or self._steps % self._measure_every:
            return None
        return mean_signals([self._measured(coefficients, signals) for coefficients in draws])

    def _measured(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals:
        measured = self.measure(coefficients)
        return StepSignals(
            cosine=measured.cosine if "cosine" in signals else {},
            dot=measured.dot if "dot" in signals else {},
            norm=measured.norm if "norm" in signals else {},
            auxiliary={name: measured.auxiliary[name] for name in signals},
            dev_norm=measured.dev_norm,
        )

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> Update:
        self.trials.append(dict(coefficients))
        return RecordedUpdate(tuple(coefficients))

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        tasks = [update.tasks for update in updates]
        self.applied.append(list(zip(tasks, coefficients, strict=True)))

    def dev_loss(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        batches: int | None = None,
    ) -> DevLossAlong:
        """A made-up loss, and derivatives over several orders of magnitude."""
        gradient = [self._random.gauss(0, 1) * self._random.lognormvariate(0, 3) for _ in updates]
        return DevLossAlong(self._random.uniform(0, 5), gradient)

    def dev_score(self, rows: int | None = None) -> float:
        self.dev_rows.append(rows)
        if self._score is not None:
            return self._score(self.coefficients[-1] if self.coefficients else {})
        return self._random.random()

    def snapshot(self) -> Callable[[], None]:
        return lambda: None

    def random_signals(self, coefficients: Mapping[str, float]) -> StepSignals:
        """Cosines from [-1, 1], norms over several orders of magnitude, dots to match."""

        def cosine() -> float:
            return self._random.uniform(-1, 1)

        def norm() -> float:
            return self._random.lognormvariate(0, 3)

        dev_norm = norm()
        cosines = {name: cosine() for name in coefficients}
        norms = {name: norm() for name in coefficients}
        auxiliary_cosine, auxiliary_norm = cosine(), norm()
        return StepSignals(
            cosine=cosines,
            dot={name: cosines[name] * norms[name] * dev_norm for name in coefficients},
            norm=norms,
            auxiliary={
                "cosine": auxiliary_cosine,
                "dot": auxiliary_cosine * auxiliary_norm * dev_norm,
                "norm": auxiliary_norm,
            },
            dev_norm=dev_norm,
        )
