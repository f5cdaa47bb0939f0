"""Launchers, which train runs, and the orders that they are given."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import click

from aang_core import ConfigError
from aang_core.cli import RareOption, echo
from aang_plugin_compare.claim import attempts_so_far

_ATTEMPT = re.compile(r"attempt [0-9]+ on ")
_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


@dataclass(frozen=True)
class Order:
    """A run to be trained.

    Attributes:
        name: name of the run, for messages.
        folder: the run folder; if a run has started there, it is resumed.
        options: a YAML file with all its options.
        log: a file to which its output is appended.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    name: str
    folder: Path
    options: Path
    log: Path
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def begin_log(self, attempt: int, node: str) -> None:
        """Append the line with which an attempt begins to the log.

        Args:
            attempt: number of the attempt, from 1.
            node: name of the machine.
        """
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"attempt {attempt} on {node}\n")

    @property
    def root(self) -> Path:
        """The folder that holds the logs and runs of all orders."""
        return self.log.parents[len(Path(self.name).parts)]

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to be resumed."""
        return (self.folder / "config.yaml").is_file()

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``aang`` that start or resume the run."""
        if self.has_begun:
            what = ["--resume", str(self.folder)]
        else:
            what = [str(self.options), "--out", str(self.folder)]
        return [*self.before, "train", "--json", *what, *self.after]

    def command(self, attempt: int, node: str) -> list[str]:
        """The command that trains it in a process which ends with the one that started it.

        It imports nothing from the current folder, whose files may be a stranger's.

        Args:
            attempt: number of the attempt, from 1.
            node: name of the machine, for messages.
        """
        asked = json.dumps({"order": vars(self), "attempt": attempt, "node": node}, default=str)
        return [sys.executable, "-P", "-m", "aang_plugin_compare.leashed", asked]

    def start(
        self, attempt: int, node: str, environment: Mapping[str, str], folder: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start the process that trains it, and append what it prints to the log.

        A terminal sends an interrupt to its whole process group. In a group of its own, the process
        only gets what is sent to it; a second signal would end it at once.

        Args:
            attempt: number of the attempt, from 1.
            node: name of the machine, for messages.
            environment: all of its environment variables.
            folder: its current folder; None for that of this process.
        """
        self.begin_log(attempt, node)
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                self.command(attempt, node),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                process_group=0,
            )

    def failure(self, status: int, node: str = "") -> str:
        """Why the run failed: the last error that its last attempt printed.

        Args:
            status: its exit status.
            node: name of the machine; empty if there is only one.
        """
        written = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        begins = [number for number, line in enumerate(written) if _ATTEMPT.match(line)]
        # The errors of earlier attempts are not those of this one.
        lines = written[begins[-1] + 1 :] if begins else written
        # The lines after an error say how to resume, which the next call of the comparison does.
        errors = [line for line in lines if line.startswith("Error: ")]
        words = (errors or lines or ["it said nothing"])[-1]
        on = f" on {node}" if node else ""
        return f"{words} (exit status {status}{on}; {self.log})"


class Launcher:
    """Trains runs, each in a process of its own.

    Args:
        at_once: number of runs that it trains at the same time.
    """

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        self._lock = Lock()
        self._running: dict[Path, Callable[[bool], None]] = {}
        self._stops = 0

    def ready(self) -> None:
        """Check that runs can be started; called while this process holds the folder's lock.

        Raises:
            ConfigError: they cannot be started.
        """

    def train(self, order: Order) -> str | None:
        """Train a run to its end. Called from several threads.

        Meanwhile ``_running`` has a function that ends it: with True at once, and otherwise as soon
        as it has a checkpoint.

        Args:
            order: the run.

        Returns:
            Why it failed; None if it finished.
        """
        raise NotImplementedError

    def end(self, order: Order) -> bool:
        """Ask one run to take a checkpoint and end; :meth:`train` then returns.

        Call it once for each run: a second call ends the run without a checkpoint.

        Args:
            order: the run.

        Returns:
            Whether it was running.
        """
        with self._lock:
            if (end := self._running.get(order.folder)) is not None:
                end(False)
        return end is not None

    def stop(self) -> None:
        """Start no more runs, and ask running ones to take a checkpoint and end.

        A second call ends them at once.
        """
        with self._lock:
            self._stops += 1
            for end in self._running.values():
                end(self._stops > 1)


class LocalLauncher(Launcher):
    """Starts a process of this machine for each run, which ends at once if this process dies.

    Args:
        at_once: number of processes that run at the same time and share the cores.
    """

    def train(self, order: Order) -> str | None:
        from joblib import cpu_count

        # Processes that each use every core slow each other down.
        threads = max(1, cpu_count() // self.at_once)
        # A thread that waits at a barrier must not keep a core from the process that it waits for.
        own = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", **os.environ}
        attempt = attempts_so_far(order.log) + 1
        # The process ends when its input closes, so the input stays open until then.
        with order.start(attempt, "this machine", own) as process:
            with self._lock:
                # A second signal ends it at once, without a checkpoint.
                self._running[order.folder] = lambda force: process.send_signal(signal.SIGTERM)
                if self._stops:
                    process.send_signal(signal.SIGTERM)
            status = process.wait()
        with self._lock:
            del self._running[order.folder]
        return None if status == 0 else order.failure(status)


_LAUNCHER_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="where runs run: as processes of this machine, or on a Ray cluster",
    ),
    click.option(
        "--address",
        cls=RareOption,
        metavar="HOST:PORT",
        help="address of the Ray cluster, or auto for this machine's",
    ),
    click.option(
        "--cpus-per-run",
        cls=RareOption,
        type=click.IntRange(min=1),
        help="CPUs per run on Ray; default: 1",
    ),
    click.option(
        "--gpus-per-run",
        cls=RareOption,
        type=click.FloatRange(min=0),
        help="GPUs per run on Ray; default: 0",
    ),
    click.option(
        "--trust-remote-code",
        cls=RareOption,
        is_flag=True,
        help="run the Python code that comes with the model, for models that have some",
    ),
)


def launcher_options(command: _CommandT) -> _CommandT:
    """Add the options that say where runs run, as :func:`chosen_launcher` reads them."""
    return _with_options(command, _LAUNCHER_OPTIONS)


def _with_options(command: _CommandT, options: Sequence[Callable[..., Any]]) -> _CommandT:
    for option in reversed(options):
        command = option(command)
    return command


def options_of_many_runs(
    file: str, out: str, formats: Sequence[str]
) -> Callable[[_CommandT], _CommandT]:
    """Add the options and arguments of a command that trains many runs.

    Args:
        file: the name of the file that the command reads, in its help.
        out: the folder of its runs without ``--out`` and without such a file.
        formats: the forms of its table.
    """
    options = (
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            help=f"folder of all runs; by default {out}, or the path of {file} without its ending",
        ),
        *_LAUNCHER_OPTIONS,
        click.option(
            "--format",
            "kind",
            type=click.Choice(formats),
            default="text",
            show_default=True,
            help="format of the printed table; all of them are written",
        ),
        click.option(
            "--table-only", is_flag=True, help="train nothing; make the table of finished runs"
        ),
        click.option("--quiet", is_flag=True, help="print only the table"),
        click.argument(
            "arguments",
            metavar=f"{file} | -- [TRAIN OPTIONS]",
            nargs=-1,
            type=click.UNPROCESSED,
        ),
    )

    return lambda command: _with_options(command, options)


def file_in(arguments: Sequence[str]) -> Path | None:
    """The YAML file that the arguments of such a command begin with; None if there is none."""
    if arguments and arguments[0].endswith((".yaml", ".yml")):
        return Path(arguments[0])
    return None


@contextmanager
def chosen_launcher(root: Path, options: Mapping[str, Any]) -> Iterator[Launcher]:
    """The launcher of ``--engine``; a Ray cluster stays connected inside the ``with``.

    Args:
        root: the folder of the comparison.
        options: ``jobs``, and the values of :func:`options_of_many_runs`; None for those not
            given. Without an address, a Ray cluster is started on this machine.

    Raises:
        ConfigError: an option belongs to another engine, or Ray is not installed.
        AangError: there is no such cluster.
    """
    address, cpus, gpus = (options[n] for n in ("address", "cpus_per_run", "gpus_per_run"))
    if options["engine"] == "local":
        of_ray = {"--address": address, "--cpus-per-run": cpus, "--gpus-per-run": gpus}
        if given := [name for name, value in of_ray.items() if value is not None]:
            raise ConfigError(
                f"{given[0]}: is an option of --engine ray; add that, or leave it out"
            )
        yield LocalLauncher(options["jobs"] or 1)
        return
    if gpus and gpus > 1 and not gpus.is_integer():
        raise ConfigError(f"--gpus-per-run {gpus:g}: give a whole number, or a part of one GPU")
    # Ray is an extra of this plug-in.
    from aang_plugin_compare.ray_engine import RayLauncher, ray_cluster

    needs = {"CPU": cpus or 1, "GPU": gpus or 0}
    with ray_cluster(address):
        yield RayLauncher(root, lambda line: echo(line, err=True), needs, options["jobs"])
