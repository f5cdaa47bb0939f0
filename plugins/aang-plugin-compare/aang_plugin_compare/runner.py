"""Training runs, each in a separate process; finished runs are kept."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Timer

import click
import yaml
from aang.assembly import read_end_task
from aang.config import TrainConfig, left_to_the_data, with_absolute_paths
from aang.runs import Interrupted, interruptible, read_part
from aang.runs.schema import DataStatistics

from aang_core import AangError, ConfigError, ReadReport, Registry
from aang_core.cli import echo, given_arguments, note, plugin_options
from aang_core.storage import write_file, writing
from aang_plugin_compare.cells import Job, matched
from aang_plugin_compare.launcher import Launcher, Order
from aang_plugin_compare.run_folders import State, newer, remove_checkpoints, run_state


@dataclass(frozen=True)
class Runs:
    """The runs of a comparison or a search, and their launcher.

    Attributes:
        root: the folder that holds them, in ``runs``, and their logs and options, in ``logs``.
        launcher: trains them.
        registry: where the default space and weighter are looked up.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    root: Path
    launcher: Launcher
    registry: Registry
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    _digests: dict[str, str] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    @classmethod
    def asked(
        cls, root: Path, launcher: Launcher, registry: Registry, trust_remote_code: bool
    ) -> "Runs":
        """The runs, with the plug-ins of the command that runs in this process."""
        before = plugin_options(click.get_current_context())
        after = ["--trust-remote-code"] if trust_remote_code else []
        return cls(root, launcher, registry, before, after)

    def state(self, job: Job) -> State:
        """How far a run has come.

        Raises:
            ConfigError: its folder holds a run with different options, or of other data.
        """
        folder = self.root / job.folder
        state = run_state(folder, job.config, self.registry)
        if state == "finished":  # a resumed training compares its data by itself
            self.refuse_other_data(job)
        return state

    def refuse_other_data(self, job: Job) -> None:
        """Refuse a run that ended on other data, and note files it read that are newer than it.

        Raises:
            ConfigError: its folder holds a run of other data.
        """
        folder = self.root / job.folder
        if self._data(job.config) != read_part(DataStatistics, folder).digest:
            raise ConfigError(
                f"{folder}: the data has changed since this run, whose scores do not compare with "
                "those of new runs. Give another folder with --out, or remove this one to train "
                "all runs again"
            )
        self.note_newer(job.config, folder, folder / "config.yaml")

    def note_newer(self, config: TrainConfig, kept: Path, written: Path) -> None:
        """Note paths that a kept result read and that changed after its file was written, once."""
        for path in newer(_read_besides(config), written):
            if path not in self._told:
                self._told.add(path)
                note(
                    f"{path} is newer than {kept}, which is kept; remove the runs if what they "
                    "read has changed"
                )

    def _data(self, config: TrainConfig) -> str:
        """The digest of the data that a training would have now; runs of a task share one read."""
        config = config.model_copy(update={"trust_remote_code": bool(self.after)})
        key = config.model_dump_json(exclude={"out", "recipe", "space", "weighter", "steps", "lr"})
        if key not in self._digests:
            task, _ = read_end_task(config, ReadReport(), self.registry)
            self._digests[key] = task.digest
        return self._digests[key]

    def order(self, folder: Path, config: TrainConfig) -> Order:
        """Write the files that a launcher needs to train a run, and name them.

        The output of earlier attempts is kept.

        Args:
            folder: the run folder, relative to ``root``; it is somewhere in ``runs``.
            config: the run's options. All of them are written, so that a new default cannot change
                the run, except those that depend on data not read yet.

        Raises:
            StorageError: a file cannot be written.
        """
        name = folder.relative_to("runs")
        log = self.root / "logs" / name.with_suffix(".txt")
        options = log.with_suffix(".yaml")
        given = config.model_dump(mode="json", exclude={"out", *left_to_the_data(config)})
        with writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
            write_file(options, yaml.safe_dump(given))
        return Order(str(name), self.root / folder, options, log, self.before, self.after)


def _read_besides(config: TrainConfig) -> list[str]:
    """What a run reads besides the end task's data; names of the hub and of spaces are relative."""
    config = with_absolute_paths(config)
    texts = (*config.domain, *config.out_of_domain, *config.unlabelled, *config.aux_task.values())
    return [str(place) for place in (config.model or "", config.space, *texts)]


@dataclass(frozen=True)
class Ended:
    """How one run ended.

    Attributes:
        job: the run.
        state: its state before.
        error: the last error that it printed; None if it finished.
    """

    job: Job
    state: State
    error: str | None

    @property
    def name(self) -> str:
        """The name of the run, for messages."""
        return str(self.job.folder.relative_to("runs"))


class Runner:
    """Trains the runs that have not finished, several at the same time.

    Args:
        runs: starts them. This process has locked their folder.
        ended: called after each run, one call at a time, from the thread that ran it.
        began: called when a run begins to train, from the thread that trains it.
    """

    def __init__(
        self,
        runs: Runs,
        ended: Callable[[Ended], None],
        began: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self._runs = runs
        self._ended = ended
        self._began = began
        self._stop = Event()
        self._lock = Lock()
        self._over: dict[Path, Event] = {}

    def check(self, jobs: Sequence[Job]) -> None:
        """Check that the runs can be trained, before anything is.

        Raises:
            ConfigError: the launcher cannot start runs, or the folder of a run holds one with other
                options. For a matched run that is only known when its turn comes, and then
                counts as a failure.
        """
        self._runs.launcher.ready()
        for job in jobs:
            if job.match is None:
                self._runs.state(job)

    def run(self, jobs: Sequence[Job], seconds: float | None = None) -> list[Ended]:
        """Run what has not finished; a failure does not stop the others.

        An interrupt stops all processes, which can be resumed, and is raised again once they have
        saved their checkpoints. A second interrupt stops them at once.

        Args:
            jobs: the runs.
            seconds: stop all processes after this time.

        Returns:
            How the runs ended, without runs that were stopped or not started.
        """
        timer = Timer(seconds or 0, self._halt)
        timer.daemon = True
        if seconds is not None:
            timer.start()
        pool = ThreadPoolExecutor(self._runs.launcher.at_once)
        self._over = {job.folder: Event() for job in jobs}
        # Runs that wait for others come last, so that no run waits for ever.
        ordered = sorted(jobs, key=lambda job: job.match is not None)
        try:
            futures = [pool.submit(self._job, job) for job in ordered]
            return [ended for future in futures if (ended := future.result()) is not None]
        except BaseException:
            self._halt()
            raise
        finally:
            timer.cancel()
            wait_for(pool, self._halt)

    def _halt(self) -> None:
        """Start no more runs, and stop the running ones."""
        self._stop.set()
        self._runs.launcher.stop()

    def _job(self, job: Job) -> Ended | None:
        try:
            for run in () if job.match is None else job.match.runs:
                self._over[run].wait()
            ended = None if self._stop.is_set() else self._trained(job)
            if ended is not None:
                with self._lock:
                    self._ended(ended)
            return ended
        finally:
            self._over[job.folder].set()

    def _trained(self, job: Job) -> Ended | None:
        try:
            job = replace(job, config=matched(job, self._runs.root))
            state = self._runs.state(job)
        except AangError as error:
            return Ended(job, "new", f"Error: {error}")
        failure = None
        if state != "finished":
            self._began(job)
            failure = self._runs.launcher.train(self._runs.order(job.folder, job.config))
        if self._stop.is_set():
            return None
        if failure is None:
            remove_checkpoints(self._runs.root / job.folder)
        return Ended(job, state, failure)


def wait_for(pool: ThreadPoolExecutor, stop: Callable[[], None]) -> None:
    """Wait until the runs of a pool have ended.

    Args:
        pool: its threads train runs that have been asked to end, or will end by themselves.
        stop: called if an interrupt arrives meanwhile, to end the runs at once.
    """
    try:
        pool.shutdown()
    except BaseException:
        stop()
        pool.shutdown()
        raise


@contextmanager
def resumable() -> Iterator[None]:
    """If an interrupt stops the body of the ``with``, print the command that goes on, and exit.

    Raises:
        SystemExit: with the status of a process that the signal has ended.
    """
    again = shlex.join(["aang", *given_arguments(click.get_current_context())])
    try:
        with interruptible():
            yield
    except Interrupted as stopped:
        echo(f"{stopped}; to go on:\n    {again}", err=True)
        raise SystemExit(stopped.status) from None
