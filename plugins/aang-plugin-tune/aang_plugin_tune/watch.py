"""Watching a trial: its dev scores so far, and whether they are bad enough to stop it."""

import math
from functools import cached_property
from pathlib import Path

from aang.config import TrainConfig, recorded_config
from aang.runs import DevScores, read_lines
from optuna.trial import Trial

from aang_core import DataError, Metric

SPARED = 0.25
"""The part of its steps that a run trains before it can be pruned."""


class Watch:
    """Reads the dev scores of a run while it trains, and tells them to Optuna.

    A trial is judged by its scores alone, one after the other, and not by when they were read: a
    run that has ended by the time is pruned, too, if its scores say so.

    Args:
        trial: the trial.
        config: the run's options.
        folder: the run folder.
    """

    def __init__(self, trial: Trial, config: TrainConfig, folder: Path) -> None:
        self._trial = trial
        self._config = config
        self._folder = folder
        self._seen = 0
        self._best = -math.inf
        # A process that was killed may have told the last score, and not what follows from it.
        self._last_told = trial.storage.get_trial(trial._trial_id).last_step
        self.pruned = False

    def look(self) -> bool:
        """Read the scores that are new, and return whether the trial is pruned."""
        for line in self._lines()[self._seen :]:
            if self.pruned:
                break
            self._seen += 1
            # What a run keeps is its best model, so the best score so far is what it is worth.
            self._best = max(self._best, line.dev[self._metric])
            if self._last_told is not None and line.step < self._last_told:
                continue
            if line.step != self._last_told:
                self._trial.report(self._best, line.step)
                self._last_told = line.step
            spared = line.step < SPARED * self._config.steps
            self.pruned = not spared and self._trial.should_prune()
        return self.pruned

    @cached_property
    def _metric(self) -> Metric:
        """The metric of the run, which chooses it by the kind of its end task."""
        return recorded_config(self._folder / "config.yaml").metric

    def _lines(self) -> list[DevScores]:
        try:
            return read_lines(DevScores, self._folder)
        except (FileNotFoundError, DataError):
            # The run has not begun to write, or is writing right now.
            return []
