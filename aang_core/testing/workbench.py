"""A workbench that trains nothing."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aang_core.weighting import DevLossAlong, Signal, StepSignals, Update

Measure = Callable[[Mapping[str, float]], StepSignals]
"""Signals of a step, given its coefficients."""


@dataclass(frozen=True)
class RecordedUpdate:
    """An update of nothing."""

    tasks: tuple[str, ...]


class RecordingWorkbench:
    """Records every step that a weighter asks for and answers with made-up signals.

    end_task, auxiliaries: names of the tasks.
    seed: of the samples, and of the signals where ``measure`` does not give them.
    measure: what to answer to a step; :meth:`random_signals` if None.
    measure_every: answer None to all but each m-th step, as a trainer that saves on signals does.

    samples: what each call of :meth:`sample` gave. coefficients, signals: what each call of
        :meth:`step` was given. trials: the coefficients of each call of :meth:`trial`. applied:
        the tasks and coefficients of each call of :meth:`apply`.
    """

    def __init__(
        self,
        end_task: str,
        auxiliaries: Sequence[str],
        *,
        seed: int = 0,
        measure: Measure | None = None,
        measure_every: int = 1,
    ) -> None:
        self.end_task = end_task
        self.samples: list[tuple[str, ...]] = []
        self.coefficients: list[dict[str, float]] = []
        self.signals: list[frozenset[Signal]] = []
        self.trials: list[dict[str, float]] = []
        self.applied: list[list[tuple[tuple[str, ...], float]]] = []
        self._auxiliaries = list(auxiliaries)
        self._random = random.Random(seed)
        self.measure = measure or self.random_signals
        self._measure_every = measure_every

    def sample(self, n: int | None) -> tuple[str, ...]:
        chosen = self._auxiliaries if n is None else self._random.sample(self._auxiliaries, n)
        self.samples.append(tuple(chosen))
        return self.samples[-1]

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        self.coefficients.append(dict(coefficients))
        self.signals.append(signals)
        if not signals or len(self.coefficients) % self._measure_every:
            return None
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

    def dev_loss(self, updates: Sequence[Update], coefficients: Sequence[float]) -> DevLossAlong:
        """A made-up loss, and derivatives over several orders of magnitude."""
        gradient = [self._random.gauss(0, 1) * self._random.lognormvariate(0, 3) for _ in updates]
        return DevLossAlong(self._random.uniform(0, 5), gradient)

    def dev_score(self) -> float:
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
