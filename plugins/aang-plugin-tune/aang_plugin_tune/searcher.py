"""Running the trials of a search, several at the same time."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event, RLock

from aang.config import TrainConfig
from aang.runs import Result, read_part
from aang_plugin_compare.launcher import Launcher, wait_for, write_order
from aang_plugin_compare.run_folders import remove_checkpoints, run_state
from optuna.trial import Trial

from aang_core import AangError, ConfigError
from aang_plugin_tune.search import Search
from aang_plugin_tune.study import Study, Tried, all_failed, trial_folder
from aang_plugin_tune.watch import Watch

LOOK_SECONDS = 0.5
"""How often the dev scores of a run are read."""
MOST_REPEATS = 200
"""How many settings in a row may be proposed again before the search ends."""
MOST_FAILURES = 3
"""How many runs may fail before one succeeds; more of the same would fail, too."""


class Searcher:
    """Trains trials until the budget is spent.

    Args:
        root: the folder of the search, which this process has locked.
        search: the search.
        study: its record.
        launcher: trains the runs.
        ended: called with each trial that has ended, one call at a time.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    def __init__(
        self,
        root: Path,
        search: Search,
        study: Study,
        launcher: Launcher,
        ended: Callable[[Tried], None],
        *,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._search = search
        self._study = study
        self._launcher = launcher
        self._ended = ended
        self._before = tuple(before)
        self._after = tuple(after)
        self._stop = Event()
        self._lock = RLock()
        self._left: list[int] = []
        self._runs: float = 0
        self._end = float("inf")

    def run(self, *, runs: float, seconds: float) -> None:
        """Run trials; those that an earlier process has not finished come first.

        An interrupt stops all runs, which can be resumed, and is raised again once they have saved
        their checkpoints. A second interrupt stops them at once.

        Args:
            runs: how many runs there may be, with those of earlier processes.
            seconds: how many seconds the search may take, with those of earlier processes.

        Raises:
            ConfigError: the launcher cannot start runs, or the first runs have all failed.
        """
        begin = time.monotonic()
        self._runs = runs
        self._end = begin + seconds - self._study.seconds
        self._left = [t.number for t in self._study.trials if t.state == "unfinished"]
        at_once = max(1, int(min(self._launcher.at_once, runs)))
        pool = ThreadPoolExecutor(at_once)
        try:
            for worker in [pool.submit(self._work) for _ in range(at_once)]:
                worker.result()
        finally:
            self._stop.set()
            wait_for(pool, self._launcher.stop)
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
            self._refuse_to_go_on_failing()
            for _ in range(MOST_REPEATS):
                trial = self._proposed()
                if trial is None or not self._repeats(trial):
                    return trial
            return None

    def _proposed(self) -> Trial | None:
        if self._left:
            return self._study.trial(self._left.pop(0))
        runs = [t for t in self._study.trials if t.same_as is None]
        if len(runs) >= self._runs or self._study.exhausted():
            return None
        return self._study.new_trial()

    def _repeats(self, trial: Trial) -> bool:
        """Whether the setting of a trial is one that was tried before; its outcome is recorded."""
        setting = self._study.setting(trial)
        before = [t for t in self._study.trials[: trial.number] if t.same_as is None]
        same = next((t for t in before if t.setting == setting), None)
        if same is not None:
            self._study.repeat(trial, same)
        return same is not None

    def _refuse_to_go_on_failing(self) -> None:
        trials = [t for t in self._study.trials if t.same_as is None]
        failed = [t for t in trials if t.state == "failed"]
        if len(failed) >= MOST_FAILURES and not any(t.state == "finished" for t in trials):
            raise ConfigError(all_failed(f"the first {len(failed)} runs", failed[-1], self._root))

    def _train(self, trial: Trial) -> None:
        with self._lock:
            setting = self._study.setting(trial)
        folder = self._root / trial_folder(trial.number)
        try:
            config = self._search.config(setting)
            state = run_state(folder, config, self._search.registry)
        except AangError as error:
            self._fail(trial, f"Error: {error}")
            return
        watch = Watch(trial, config, folder)
        failure = None
        if state != "finished" and not self._look(watch):
            failure = self._trained(trial, config, watch)
        if self._look(watch):
            self._tell(trial, partial(self._study.prune, trial))
        elif (folder / "result.json").is_file():
            score = read_part(Result, folder).metric.dev
            self._tell(trial, partial(self._study.finish, trial, score))
        elif not self._is_over:
            self._fail(trial, failure or f"Error: {folder} has no result")

    def _trained(self, trial: Trial, config: TrainConfig, watch: Watch) -> str | None:
        """Train the run until it ends or is not worth going on; returns why it failed."""
        order = write_order(
            self._root,
            trial_folder(trial.number),
            config,
            before=self._before,
            after=self._after,
        )
        with ThreadPoolExecutor(1) as pool:
            training = pool.submit(self._launcher.train, order)
            while not wait([training], timeout=LOOK_SECONDS).done:
                if (self._is_over or self._look(watch)) and self._launcher.end(order):
                    break
            return training.result()

    def _look(self, watch: Watch) -> bool:
        with self._lock:
            return watch.look()

    def _fail(self, trial: Trial, error: str) -> None:
        self._tell(trial, partial(self._study.fail, trial, error))

    def _tell(self, trial: Trial, record: Callable[[], None]) -> None:
        """Record how a trial ended, and remove what nobody needs any more."""
        folder = self._root / trial_folder(trial.number)
        with self._lock:
            record()
            ended = self._study.trials[trial.number]
            remove_checkpoints(folder)
            self._ended(ended)
