"""A workbench that trains nothing."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from aang_core.contracts import expect
from aang_core.tasks.workbench import (
    AGAINST_DEV,
    DevLossAlong,
    Signal,
    StepSignals,
    Update,
    mean_signals,
    require_finite_score,
)

Measure = Callable[[Mapping[str, float]], StepSignals]
"""Signals of a step, given its coefficients."""


@dataclass(frozen=True)
class RecordedUpdate:
    """An update without any change.

    Attributes:
        tasks: the tasks that were trained or differentiated.
        vector: the gradient over a body of a few parameters; empty for an update of a trial.
    """

    tasks: tuple[str, ...]
    vector: tuple[float, ...] = ()


class RecordingWorkbench:
    """Records every step that a weighter takes, and answers with made-up signals.

    Args:
        end_task: name of the end task.
        auxiliaries: names of the auxiliary tasks.
        seed: seed of the samples and the generator, and of the signals if ``measure`` is None.
        measure: makes the signals of a step; None for :meth:`random_signals`.
        measure_every: return signals only every this many steps, as ``--meta-every`` does.
        draws_per_step: number of draws that make up a step.
        score: makes the answer of :meth:`dev_score` from the coefficients of the last step; None
            for a random number.
        gradient: makes the gradient of a task, by name, as a list of a few numbers; None for random
            vectors of eight numbers.
        skip_every: let every n-th call of :meth:`gradients` return None, as ``--on-nan skip`` does
            for gradients that are not finite; None to skip none.
        steps: optimiser steps of the run, which steps, descents and trials use up.

    Attributes:
        samples: result of each call of :meth:`sample`.
        sample_weights: weights passed to each call of :meth:`sample`.
        dev_rows: rows passed to each call of :meth:`dev_score`.
        coefficients: coefficients of each draw of each step.
        signals: signals passed to each call of :meth:`step` or :meth:`step_over`.
        trials: coefficients passed to each call of :meth:`trial`.
        trial_steps: steps passed to each call of :meth:`trial`.
        applied: tasks and coefficients passed to each call of :meth:`apply`.
        descents: coefficients passed to each call of :meth:`descend`, by task.
        of_heads: coefficients of the heads in each call of :meth:`descend`, by task.
        steps_taken: optimiser steps so far: steps, descents, those of trials, and skipped ones.
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
        gradient: Callable[[str], Sequence[float]] | None = None,
        skip_every: int | None = None,
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
        self.trial_steps: list[int | None] = []
        self.applied: list[list[tuple[tuple[str, ...], float]]] = []
        self.descents: list[dict[str, float]] = []
        self.of_heads: list[dict[str, float]] = []
        self._auxiliaries = list(auxiliaries)
        self._random = random.Random(seed)
        self.measure = measure or self.random_signals
        self._gradient = gradient or self.random_gradient
        self._skip_every = skip_every
        self._asked = 0
        self._measure_every = measure_every
        self.steps_taken = 0
        self._score = score
        self._budget = steps

    @property
    def steps_left(self) -> int:
        return max(self._budget - self.steps_taken, 0)

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        self.sample_weights.append(None if weights is None else dict(weights))
        if n is None or n >= len(self._auxiliaries):
            chosen = self._auxiliaries
        elif weights is None:
            chosen = self._random.sample(self._auxiliaries, n)
        else:
            # The n smallest of exponential variables with the weights as rates.
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
        self.steps_taken += 1
        if not signals or self.steps_taken % self._measure_every:
            return None
        return mean_signals([self._measured(coefficients, signals) for coefficients in draws])

    def _measured(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals:
        measured = self.measure(coefficients)
        lacking = sorted(signals - measured.auxiliary.keys())
        expect(
            not lacking,
            "auxiliary of the measured StepSignals",
            f"a value of the signal {' and '.join(lacking)}, which the weighter asks for",
            dict(measured.auxiliary),
        )
        return StepSignals(
            cosine=measured.cosine if "cosine" in signals else {},
            dot=measured.dot if "dot" in signals else {},
            norm=measured.norm if "norm" in signals else {},
            auxiliary={name: measured.auxiliary[name] for name in signals},
            dev_norm=measured.dev_norm if signals & AGAINST_DEV else None,
            loss=measured.loss if "loss" in signals else {},
        )

    def gradients(self, names: Sequence[str]) -> Sequence[Update] | None:
        known = {self.end_task, *self._auxiliaries}
        once = bool(names) and len(set(names)) == len(names) and known >= set(names)
        expect(once, "tasks of gradients", "names of tasks, each once", list(names))
        self._asked += 1
        if self._skip_every is not None and self._asked % self._skip_every == 0:
            self.steps_taken += 1
            return None
        return [RecordedUpdate((name,), tuple(self._gradient(name))) for name in names]

    def dots(self, updates: Sequence[Update]) -> list[list[float]]:
        vectors = [update.vector for update in _recorded(updates)]
        return [
            [math.fsum(a * b for a, b in zip(u, v, strict=True)) for v in vectors] for u in vectors
        ]

    def descend(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        of_heads: Sequence[float] | None = None,
    ) -> None:
        tasks = [update.tasks[0] for update in _recorded(updates)]
        heads = coefficients if of_heads is None else of_heads
        self.descents.append(dict(zip(tasks, coefficients, strict=True)))
        self.of_heads.append(dict(zip(tasks, heads, strict=True)))
        self.steps_taken += 1

    def trial(
        self,
        coefficients: Mapping[str, float],
        *,
        fraction: float = 1.0,
        steps: int | None = None,
        at_most: int | None = None,
        offload: bool = False,
    ) -> Update:
        """An update without any change; without ``steps`` it counts as one step."""
        if steps is not None and at_most is not None:
            steps = min(steps, at_most)
        self.trials.append(dict(coefficients))
        self.trial_steps.append(steps)
        self.steps_taken += 1 if steps is None else steps
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
        """A made-up loss, with derivatives over several orders of magnitude."""
        gradient = [self._random.gauss(0, 1) * self._random.lognormvariate(0, 3) for _ in updates]
        return DevLossAlong(self._random.uniform(0, 5), gradient)

    def dev_score(self, rows: int | None = None) -> float:
        self.dev_rows.append(rows)
        if self._score is None:
            return self._random.random()
        return require_finite_score(self._score(self.coefficients[-1] if self.coefficients else {}))

    def snapshot(self) -> Callable[[], None]:
        return lambda: None

    def random_gradient(self, task: str) -> list[float]:
        """A vector of eight numbers, of a length that varies over several orders of magnitude."""
        length = self._random.lognormvariate(0, 3)
        return [length * self._random.gauss(0, 1) for _ in range(8)]

    def random_signals(self, coefficients: Mapping[str, float]) -> StepSignals:
        """Cosines from [-1, 1], norms and losses over orders of magnitude, and matching dots."""

        def cosine() -> float:
            return self._random.uniform(-1, 1)

        def norm() -> float:
            return self._random.lognormvariate(0, 3)

        dev_norm = norm()
        cosines = {name: cosine() for name in coefficients}
        norms = {name: norm() for name in coefficients}
        auxiliary_cosine, auxiliary_norm = cosine(), norm()
        losses = {name: norm() for name in coefficients}
        return StepSignals(
            cosine=cosines,
            dot={name: cosines[name] * norms[name] * dev_norm for name in coefficients},
            norm=norms,
            auxiliary={
                "cosine": auxiliary_cosine,
                "dot": auxiliary_cosine * auxiliary_norm * dev_norm,
                "norm": auxiliary_norm,
                "loss": norm(),
            },
            dev_norm=dev_norm,
            loss=losses,
        )


def _recorded(updates: Sequence[Update]) -> list[RecordedUpdate]:
    """The same updates, which this bench has returned."""
    recorded = [update for update in updates if isinstance(update, RecordedUpdate)]
    expect(
        len(recorded) == len(updates), "updates", "those that this bench returned", list(updates)
    )
    return recorded
