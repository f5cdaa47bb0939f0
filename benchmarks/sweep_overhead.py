"""What a sweep of many short runs costs beside the runs themselves.

    python -m benchmarks.sweep_overhead OUT --engine local --runs 200
    python -m benchmarks.sweep_overhead OUT --engine ray --runs 200

``aang compare`` plans the runs, writes their orders and gives them to its launcher. Each run is a
process that imports AANG, claims its folder, and finds there that the training has finished: about
a second. So nothing is trained, and everything between the runs is as in a sweep of trainings. A
run's lifetime is that of its process, according to the system. With s slots,

    overhead of a run = (s · seconds from the first start to the last end - Σ lifetimes) / runs

The lifetimes are kept in OUT, so the same command continues after an interruption. Only the seconds
in which it was at work count.
"""

import json
import os
import select
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

import click
import yaml
from aang_plugin_compare.launcher import Launcher, Order, chosen_launcher
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Runner, Runs
from joblib import cpu_count

from aang_core import load_plugins
from aang_core.storage import locked, write_file

_LOOK_SECONDS = 0.1
_YOUNG_SECONDS = 2.0
"""A process may become another program in this time."""
_MODULE = b"aang_plugin_compare.leashed"


@dataclass(frozen=True)
class Life:
    """The process of a run, with times by the clock that counts from the start of the system.

    Attributes:
        run: the run's folder.
        session: the process of this script that measured it.
        began: when it was started.
        ended: when it had ended.
    """

    run: str
    session: int
    began: float
    ended: float


@dataclass(frozen=True)
class Overhead:
    """The overhead of some runs.

    Attributes:
        runs: their number.
        slots: how many could run at the same time.
        seconds: from the first start to the last end, summed over the sessions.
        lifetimes: seconds that their processes lived, summed.
    """

    runs: int
    slots: int
    seconds: float
    lifetimes: float

    @classmethod
    def of(cls, lives: Sequence[Life], slots: int) -> "Overhead":
        """The overhead of all runs in ``lives``.

        Examples:
            Two slots; each begins its second run a tenth of a second after the first:

            >>> lives = [Life("a", 1, 0.0, 1.0), Life("b", 1, 0.0, 1.0)]
            >>> lives += [Life("c", 1, 1.1, 2.1), Life("d", 1, 1.1, 2.1)]
            >>> round(Overhead.of(lives, 2).of_a_run, 3)
            0.05
        """
        sessions: dict[int, list[Life]] = defaultdict(list)
        for life in lives:
            sessions[life.session].append(life)
        seconds = sum(max(x.ended for x in s) - min(x.began for x in s) for s in sessions.values())
        return cls(len(lives), slots, seconds, sum(life.ended - life.began for life in lives))

    @property
    def of_a_run(self) -> float:
        """Seconds of a slot that a run costs beyond its own lifetime."""
        return (self.slots * self.seconds - self.lifetimes) / self.runs


class Watch:
    """Records when the processes of runs begin and end, whatever started them on this machine.

    Args:
        root: the folder that their run folders are in.
        file: the file that lives are appended to.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self._root = str(root).encode()
        self._file = file
        self._over = Event()
        self._others: set[int] = set()
        self._living: dict[int, tuple[int, str, float]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch during the block, and until the last run has ended."""
        thread = Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        ends = select.poll()
        while not self._over.is_set() or self._living:
            for pid in _processes():
                if pid not in self._others and pid not in self._living:
                    self._look_at(pid, ends)
            for descriptor, _ in ends.poll(1000 * _LOOK_SECONDS):
                now = time.clock_gettime(time.CLOCK_BOOTTIME)
                ends.unregister(descriptor)
                os.close(descriptor)
                pid = next(p for p, (handle, *_) in self._living.items() if handle == descriptor)
                _, run, began = self._living.pop(pid)
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(_line(Life(run, os.getpid(), began, now)))

    def _look_at(self, pid: int, ends: select.poll) -> None:
        """Register a new process if it is a run's."""
        try:
            handle = os.pidfd_open(pid)
        except OSError:  # it has ended
            return
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            began = _start(pid)
        except (OSError, ValueError, IndexError):
            os.close(handle)
            return
        if _MODULE in words and any(self._root in word for word in words):
            asked = json.loads(words[words.index(_MODULE) + 1])
            self._living[pid] = (handle, asked["order"]["folder"], began)
            ends.register(handle, select.POLLIN)
            return
        os.close(handle)
        if time.clock_gettime(time.CLOCK_BOOTTIME) - began > _YOUNG_SECONDS:
            self._others.add(pid)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _start(pid: int) -> float:
    """When a process was started, in hundredths of a second by the clock of the system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


class _Finished(Launcher):
    """Hands runs over to another launcher when their training has already finished."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(launcher.at_once)
        self._launcher = launcher

    def ready(self) -> None:
        self._launcher.ready()

    def end(self, order: Order) -> bool:
        return self._launcher.end(order)

    def stop(self) -> None:
        self._launcher.stop()

    def train(self, order: Order) -> str | None:
        order.folder.mkdir(parents=True, exist_ok=True)
        (order.folder / "result.json").write_text("{}", encoding="utf-8")
        return self._launcher.train(order)


def lives_in(file: Path) -> list[Life]:
    """The lives in a file, without a line that was cut off."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Life(**json.loads(line)) for line in lines if line.endswith("}\n")]


def _line(life: Life) -> str:
    return json.dumps(asdict(life)) + "\n"


def sweep(
    root: Path, engine: str, runs: int, slots: int | None = None, address: str | None = None
) -> Overhead:
    """Launch the runs that have no lifetime yet, and return what all of them cost.

    Args:
        root: a folder that belongs to this script.
        engine: ``local`` or ``ray``.
        runs: number of runs of the sweep.
        slots: how many run at the same time; None for one on each CPU. Ray then gets all runs at
            once, its default.
        address: of a Ray cluster on this machine; None starts one.

    Raises:
        RuntimeError: a run has failed.
    """
    there = slots or cpu_count()
    root = root.resolve() / f"{engine}-{there}"
    make_root(root)
    file = root / "lifetimes.jsonl"
    registry = load_plugins().registry
    methods = {"plain": {"weighter": "single-task"}}
    spec = root / "spec.yaml"
    spec.write_text(yaml.safe_dump({"tasks": {"demo": {}}, "methods": methods, "seeds": [0]}))
    cells = read_comparison(spec, registry, seeds=runs).cells
    kept = lives_in(file)
    write_file(file, "".join(map(_line, kept)))
    known = {life.run for life in kept}
    left = [cell for cell in cells if str(root / cell.folder) not in known]
    if left:
        options = {"engine": engine, "jobs": there if engine == "local" else slots}
        options |= {"address": address, "cpus_per_run": None, "gpus_per_run": None}
        with (
            Watch(root, file).watching(),
            chosen_launcher(root, options) as launcher,
            locked(root),
        ):
            runner = Runner(Runs(root, _Finished(launcher), registry), lambda ended: None)
            runner.check(left)
            failed = [ended.error for ended in runner.run(left) if ended.error]
        if failed:
            raise RuntimeError(f"{len(failed)} runs failed, the first one so: {failed[0]}")
    return Overhead.of(lives_in(file), there)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--runs", type=click.IntRange(1), default=200, show_default=True)
@click.option("--slots", type=click.IntRange(1), help="runs at once; by default one on each CPU")
@click.option("--address", help="of a Ray cluster on this machine; without it, one is started")
def main(out: Path, engine: str, runs: int, slots: int | None, address: str | None) -> None:
    """Measure and print a row of the table."""
    cost = sweep(out, engine, runs, slots, address)
    click.echo("| engine | runs | slots | lifetime of a run | overhead of a run |")
    click.echo("|---|---|---|---|---|")
    click.echo(
        f"| {engine} | {cost.runs} | {cost.slots} | {cost.lifetimes / cost.runs:.2f} s "
        f"| {cost.of_a_run:.3f} s |"
    )


if __name__ == "__main__":
    main()
