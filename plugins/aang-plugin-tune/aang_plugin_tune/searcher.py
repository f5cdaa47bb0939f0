"""Running the trials of a search, several at the same time."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from threading import Event, RLock

from aang.config import recorded_config
from aang.runs import DevScores, Result, read_lines, read_part
from aang.runs.files import part_if_there
from aang.runs.schema import DataStatistics
from aang.task_types import Metric
from aang_plugin_compare.cells import Job
from aang_plugin_compare.run_folders import remove_checkpoints
from aang_plugin_compare.runner import Runs, wait_for
from optuna.trial import Trial

from aang_core import AangError, ConfigError, DataError
from aang_plugin_tune.search import Search
from aang_plugin_tune.study import Study, Tried, all_failed, trial_folder

LOOK_SECONDS = 0.5
"""How often the dev scores of a run are read."""
MOST_REPEATS = 200
"""How many proposals in a row may repeat earlier settings before the search ends."""
MOST_FAILURES = 3
"""How many runs may fail before one succeeds; more of the same would fail, too."""
SPARED = 0.25
"""The part of its steps that a run trains before it can be pruned."""


class Watch:
    """Reads the dev scores of a run while it trains, and reports them to Optuna.

    A trial is judged by its scores alone, one after the other, not by when they were read: even a
    run that has ended by then is pruned if its scores say so.

    Args:
        trial: the trial.
        steps: the number of steps that the run trains.
        folder: the run folder.
    """

    def __init__(self, trial: Trial, steps: int, folder: Path) -> None:
        self._trial = trial
        self._spared = SPARED * steps
        self._folder = folder
        self._seen = 0
        self._best = -math.inf
        # A killed process may have reported the last score without acting on it.
        self._last_told = trial.storage.get_trial(trial._trial_id).last_step
        self.pruned = False

    def look(self) -> bool:
        """Read the scores that are new, and return whether the trial is pruned."""
        try:
            lines = read_lines(DevScores, self._folder)
        except (FileNotFoundError, DataError):
            return self.pruned  # the run has not begun to write, or is writing right now
        for line in lines[self._seen :]:
            if self.pruned:
                break
            self._seen += 1
            # A run keeps its best model, so its best score so far is what counts.
            self._best = max(self._best, line.dev[self._metric])
            if self._last_told is not None and line.step < self._last_told:
                continue
            if line.step != self._last_told:
                self._trial.report(self._best, line.step)
                self._last_told = line.step
            self.pruned = line.step >= self._spared and self._trial.should_prune()
        return self.pruned

    @cached_property
    def _metric(self) -> Metric:
        """The metric of the run, which chooses it by the kind of its end task."""
        return recorded_config(self._folder / "config.yaml").metric


class Searcher:
    """Trains trials until the budget is spent.

    Args:
        runs: starts the runs; this process has locked their folder.
        search: the search.
        study: its record.
        ended: called with each trial that has ended, one call at a time.
    """

    def __init__(
        self, runs: Runs, search: Search, study: Study, ended: Callable[[Tried], None]
    ) -> None:
        self._runs = runs
        self._search = search
        self._study = study
        self._ended = ended
        self._stop = Event()
        self._lock = RLock()
        self._left: list[int] = []
        self._most: float = 0
        self._end = math.inf
        self._data = ""

    def run(self, *, runs: float, seconds: float) -> None:
        """Run trials; those that an earlier process has not finished come first.

        An interrupt stops all runs, which can be resumed, and is raised again once they have saved
        their checkpoints. A second interrupt stops them at once.

        Args:
            runs: how many runs there may be, including those of earlier processes.
            seconds: how many seconds the search may take, including those of earlier processes.

        Raises:
            ConfigError: the first runs have all failed, or the data has changed between two runs.
        """
        begin = time.monotonic()
        self._most = runs
        self._end = begin + seconds - self._study.seconds
        self._left = [t.number for t in self._study.trials if t.state == "unfinished"]
        at_once = max(1, int(min(self._runs.launcher.at_once, runs)))
        pool = ThreadPoolExecutor(at_once)
        try:
            for worker in [pool.submit(self._work) for _ in range(at_once)]:
                worker.result()
        finally:
            self._stop.set()
            wait_for(pool, self._runs.launcher.stop)
            self._study.add_seconds(time.monotonic() - begin)

    def _work(self) -> None:
        try:
            while (trial := self._next()) is not None:
                self._train(trial)
        except BaseException:
            self._stop.set()
            raise

    @property
    def _is_over(self) -> bool:
        return self._stop.is_set() or time.monotonic() >= self._end

    def _next(self) -> Trial | None:
        """The next trial to train; None if the budget is spent or nothing is left to try."""
        with self._lock:
            if self._is_over:
                return None
            trained = [t for t in self._study.trials if t.same_as is None]
            failed = [t for t in trained if t.state == "failed"]
            if len(failed) >= MOST_FAILURES and not any(t.state == "finished" for t in trained):
                raise all_failed(f"the first {len(failed)} runs", failed[-1], self._runs.root)
            for _ in range(MOST_REPEATS):
                trial = self._proposed()
                if trial is None or not self._repeats(trial):
                    return trial
            return None

    def _proposed(self) -> Trial | None:
        if self._left:
            return self._study.trial(self._left.pop(0))
        runs = [t for t in self._study.trials if t.same_as is None]
        if len(runs) >= self._most or self._study.exhausted():
            return None
        return self._study.new_trial()

    def _repeats(self, trial: Trial) -> bool:
        """Whether a trial repeats an earlier setting; if so, the same outcome is recorded."""
        setting = self._study.setting(trial)
        before = [t for t in self._study.trials[: trial.number] if t.same_as is None]
        same = next((t for t in before if t.setting == setting), None)
        if same is not None:
            self._study.repeat(trial, same)
        return same is not None

    def _train(self, trial: Trial) -> None:
        with self._lock:
            setting = self._study.setting(trial)
        folder = self._runs.root / trial_folder(trial.number)
        try:
            job = Job(trial_folder(trial.number), self._search.config(setting))
            state = self._runs.state(job)
        except AangError as error:
            self._tell(trial, f"Error: {error}")
            return
        watch = Watch(trial, job.config.last_step, folder)
        failure = None
        if state != "finished" and not self._look(watch):
            failure = self._trained(job, watch)
        if self._look(watch):
            self._tell(trial, None)
        elif (folder / "result.json").is_file():
            self._refuse_other_data(folder)
            self._tell(trial, read_part(Result, folder).metric.dev)
        elif not self._is_over:
            self._tell(trial, failure or f"Error: {folder} has no result")

    def _refuse_other_data(self, folder: Path) -> None:
        """Raise ConfigError if a file of the data was changed between the runs of the search."""
        data = part_if_there(DataStatistics, folder)
        with self._lock:
            if data is not None and data.digest != (self._data or data.digest):
                raise ConfigError(
                    f"{folder}: the data has changed since the runs before it, whose scores do not "
                    "compare with its own. Give another folder with --out"
                )
            self._data = data.digest if data is not None else self._data

    def _trained(self, job: Job, watch: Watch) -> str | None:
        """Train the run until it ends, is pruned or the search is over; returns why it failed."""
        launcher, order = self._runs.launcher, self._runs.order(job.folder, job.config)
        with ThreadPoolExecutor(1) as pool:
            training = pool.submit(launcher.train, order)
            while not wait([training], timeout=LOOK_SECONDS).done:
                if (self._is_over or self._look(watch)) and launcher.end(order):
                    break
            return training.result()

    def _look(self, watch: Watch) -> bool:
        with self._lock:
            return watch.look()

    def _tell(self, trial: Trial, outcome: float | str | None) -> None:
        """Record how a trial ended, and remove its checkpoints."""
        with self._lock:
            ended = self._study.end(trial, outcome)
            remove_checkpoints(self._runs.root / trial_folder(trial.number))
            self._ended(ended)
