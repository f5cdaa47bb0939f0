"""An estimate of what a training takes, from a few of its steps."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from aang.runs.summary import Expected
from aang_core.errors import AangError
from aang_core.tasks.workbench import Update, Workbench
from aang_core.training.bench import TrainingBench
from aang_core.training.trainer import Trainer

STEPS = 6
"""Steps that are taken. By default the dev head remembers rows of two steps before a step measures,
so the first ones are cheaper than the others."""
NOT_COUNTED = 2
SECONDS = 60.0
"""No further step after this time, in one process."""
TRIAL = 2
"""Steps of a trial; a whole one takes as many as an epoch has."""


def measure(trainer: Trainer, memory_bytes: Callable[[], int]) -> Expected:
    """Take a few steps of a training that is then thrown away.

    Args:
        trainer: the trainer, newly built. Its model is changed.
        memory_bytes: returns the peak memory so far.

    Returns:
        The estimate for the whole training.

    Raises:
        AangError: a step fails.
    """
    bench = trainer.bench
    # Several processes must take the same steps, whatever their clocks say.
    clock = _Clock(SECONDS if bench.processes.size == 1 else math.inf)
    limited = cast(Workbench, _FirstSteps(bench, clock))
    while not clock.enough(bench.steps):
        bench.begin_round()
        try:
            trainer.weighter.round(limited)
        except _EnoughError:
            break
        clock.look(bench.steps)
    began = time.perf_counter()
    trainer.score()
    evaluation = time.perf_counter() - began
    schedule = trainer.schedule
    looks = 1 + schedule.steps / schedule.eval_every
    return Expected(
        seconds=round(clock.per_step * schedule.steps + evaluation * looks, 3),
        memory_bytes=memory_bytes(),
        steps=clock.measured,
    )


class _EnoughError(AangError):
    """Enough steps are measured."""


class _Clock:
    """Times steps; the first ones do not count if there are others.

    Args:
        limit: seconds after which there are enough steps.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._began = self._looked = time.perf_counter()
        self._times: dict[int, float] = {0: self._began}

    def look(self, steps: int) -> None:
        """Note the time if there are more steps than at the last look."""
        self._looked = time.perf_counter()
        self._times.setdefault(steps, self._looked)

    def enough(self, steps: int) -> bool:
        """Whether there are enough steps, or it has taken long enough."""
        return steps >= STEPS or (steps > 0 and self._looked - self._began > self._limit)

    @property
    def _counted(self) -> tuple[int, int]:
        """The steps between which time counts."""
        last = max(self._times)
        earlier = [step for step in self._times if step < last]
        after = [step for step in earlier if step >= NOT_COUNTED]
        return (min(after) if after else max(earlier, default=0)), last

    @property
    def measured(self) -> int:
        """Number of steps that count."""
        first, last = self._counted
        return last - first

    @property
    def per_step(self) -> float:
        """Seconds of a step."""
        first, last = self._counted
        return (self._times[last] - self._times[first]) / max(1, last - first)


class _FirstSteps:
    """A workbench whose trials are short and which ends a round after the first steps."""

    def __init__(self, bench: TrainingBench, clock: _Clock) -> None:
        self._bench = bench
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        self._look()
        return getattr(self._bench, name)

    def trial(self, coefficients: Mapping[str, float], **options: Any) -> Update:
        self._look()
        return self._bench.trial(coefficients, **{**options, "steps": TRIAL})

    def _look(self) -> None:
        """Time the steps so far.

        Raises:
            _EnoughError: there are enough.
        """
        self._clock.look(self._bench.steps)
        if self._clock.enough(self._bench.steps):
            raise _EnoughError("enough steps are measured")
