"""An estimate of what a training takes, from a few of its steps."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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
    first = _FirstSteps(trainer.bench)
    with suppress(_EnoughError):
        while True:
            trainer.bench.begin_round()
            trainer.weighter.round(cast(Workbench, first))
    steps, seconds = first.counted()
    began = time.perf_counter()
    trainer.score()
    evaluation = time.perf_counter() - began
    schedule = trainer.schedule
    looks = 1 + schedule.last_step / schedule.eval_every
    return Expected(
        seconds=round(seconds / max(1, steps) * schedule.last_step + evaluation * looks, 3),
        memory_bytes=memory_bytes(),
        steps=steps,
    )


class _EnoughError(AangError):
    """Enough steps have been measured."""


class _FirstSteps:
    """A workbench whose trials are short and which ends a round after the first steps."""

    def __init__(self, bench: TrainingBench) -> None:
        self._bench = bench
        # Several processes must take the same steps, whatever their clocks say.
        self._limit = SECONDS if bench.processes.size == 1 else math.inf
        self._times = {0: time.perf_counter()}

    def __getattr__(self, name: str) -> Any:
        self._look()
        return getattr(self._bench, name)

    def trial(self, coefficients: Mapping[str, float], **options: Any) -> Update:
        self._look()
        return self._bench.trial(coefficients, **{**options, "steps": TRIAL})

    def _look(self) -> None:
        """Note the time if there are more steps than at the last look.

        Raises:
            _EnoughError: there are enough steps, or it has taken long enough.
        """
        now, steps = time.perf_counter(), self._bench.steps
        self._times.setdefault(steps, now)
        if steps >= STEPS or (steps > 0 and now - self._times[0] > self._limit):
            raise _EnoughError("enough steps are measured")

    def counted(self) -> tuple[int, float]:
        """The number of counted steps, if possible without the first ones, and their seconds."""
        last = max(self._times)
        earlier = [step for step in self._times if step < last] or [last]
        first = min((s for s in earlier if s >= NOT_COUNTED), default=max(earlier))
        return last - first, self._times[last] - self._times[first]
