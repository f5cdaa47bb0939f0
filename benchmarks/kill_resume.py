"""Check that runs that are killed and resumed equal uninterrupted ones bit for bit.

    python -m benchmarks.kill_resume OUT --kills 50

For every case, one run is left alone. Other runs are killed by SIGKILL at random moments, resumed,
killed again, and so on until they finish, until ``--kills`` kills have been made. Each result is
compared with the uninterrupted run, every byte except for times. A checkpoint is saved after every
round, so that many kills hit the writing of one. Before that, two processes resume a killed run at
once, ``--together`` times, and must never both hold its folder.

Finished chains of kills are kept in OUT; the next call continues from there.
"""

import json
import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click
import torch

from benchmarks.kills.forked import Forked, aang, import_what_a_run_needs
from benchmarks.kills.together import resume_together

CASES: dict[str, list[object]] = {
    "single-task": ["--weighter", "single-task"],
    "static": ["--weighter", "static", "--set", "static.n=2"],
    "meta-tartan": ["--weighter", "meta-tartan", "--set", "meta-tartan.n=2"],
    "factored": ["--weighter", "factored", "--set", "factored.n=2"],
    "alpha-vil": [
        *("--weighter", "alpha-vil", "--set", "alpha-vil.n=2", "--steps", 60),
        *("--set", "alpha-vil.fraction=0.25", "--eval-every", 10),
    ],
    "diw": [
        *("--weighter", "diw", "--set", "diw.n=2", "--set", "diw.tries=3", "--steps", 60),
        *("--set", "diw.fraction=0.25", "--eval-every", 10),
    ],
    "tapt": [
        *("--recipe", "tapt", "--set", "tapt.steps=16", "--set", "tapt.eval_every=4"),
        *("--set", "tapt.batch_size=8", "--steps", 12),
    ],
    "factored, packed": [
        *("--weighter", "factored", "--set", "factored.n=2", "--gradients", "packed"),
    ],
    "factored, remembered": [
        *("--weighter", "factored", "--set", "factored.n=2", "--dev-head", "remembered"),
    ],
}
DISTURBED = "factored, disturbed"
"""Between its kills, data, the number of threads and the working directory change."""
CASES[DISTURBED] = CASES["factored"]
COMMON: list[object] = [
    *("--space", "x+y+z", "--max-length", 24),
    *("--steps", 12, "--eval-every", 3, "--patience", 100),
    *("--batch-size", 4, "--dev-batch-size", 4, "--aux-batch-size", 4),
    *("--checkpoint-every", 0, "--quiet"),
]
BEFORE = 0.2
"""Share of kills while data is read, before the run folder is opened."""
ANYWHERE = 0.2
"""Share of kills at any time until the end; others come a few rounds after the previous kill."""
ROUNDS = 4
"""Most rounds after the previous kill."""

_TIMED = ("report.html", "manifest.json", "README.md", "lock.json", "clock.json", "logs.json")
"""Files that have times, or checksums of times."""

_POLL = 0.01
"""Seconds between two checks of a process; more frequent ones would slow it down."""


@dataclass(frozen=True)
class Pace:
    """Seconds until a run's folder is opened, from then to the end, and for each line of a log."""

    before: float
    training: float
    line: float


@dataclass(frozen=True)
class Chain:
    """A run that was killed and resumed until it finished.

    Attributes:
        in_writing: kills that left a file or folder half written.
        in_training: kills after the run folder was opened.
        seconds: total time.
    """

    number: int
    kills: int
    in_writing: int
    in_training: int
    identical: bool
    seconds: float


class Case:
    """The runs of one case, in one folder."""

    def __init__(self, name: str, options: Sequence[object], folder: Path) -> None:
        self.name = name
        self.folder = folder / name.replace(", ", "-")
        self.options = ["train", *options]
        self.alone = self.folder / "alone"
        self.record = self.folder / "chains.jsonl"
        self.log = self.folder / "log.txt"
        self.folder.mkdir(parents=True, exist_ok=True)

    def chains(self) -> list[Chain]:
        """The finished chains."""
        if not self.record.exists():
            return []
        return [Chain(**json.loads(line)) for line in self.record.read_text().splitlines()]

    def kills(self) -> int:
        """Number of kills in finished chains."""
        return sum(chain.kills for chain in self.chains())

    def leave_alone(self) -> Pace:
        """Train without a kill."""
        pace = self.folder / "alone.json"
        if not pace.exists():
            shutil.rmtree(self.alone, ignore_errors=True)
            run = aang([*self.options, "--out", self.alone], self.log)
            before = _opened(self.alone, run)
            if run.wait() != 0:
                raise SystemExit(f"{self.name}: the run that is left alone failed, see {self.log}")
            training = time.monotonic() - run.began - before
            found = Pace(before, training, training / _lines(self.alone))
            pace.write_text(json.dumps(asdict(found)))
        return Pace(**json.loads(pace.read_text()))

    def add_chain(self, most: int) -> Chain:
        """Start a run, kill and resume it at random moments, and compare the result."""
        number = len(self.chains())
        draw = random.Random(f"{self.name} {number}")
        pace = self.leave_alone()
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        kills, in_writing, in_training, began = 0, 0, 0, time.monotonic()
        while True:
            resume = (run / "config.yaml").exists()
            asked = ["--resume", run, "--quiet"] if resume else [*self.options[1:], "--out", run]
            disturbed = resume and self.name == DISTURBED
            if disturbed:
                self._expect_refusal(run)
            before = partial(_elsewhere, self.folder, draw.randint(1, 4)) if disturbed else _here
            process = aang(["train", *asked], self.log, before)
            if kills < most:
                _wait_for_a_moment(draw, pace, run, process)
            if kills >= most or process.ended():
                if process.wait() != 0:
                    raise SystemExit(f"{self.name}: a resumed run failed, see {self.log}")
                break
            process.kill()
            process.wait()
            kills += 1
            in_training += _holds_lock(run, process.pid)
            in_writing += any(path.name.endswith(".tmp") for path in run.rglob(".*"))
            if (run / "result.json").exists():
                break  # it had just finished, and only its lock was left over
        same = contents(run) == contents(self.alone)
        seconds = round(time.monotonic() - began, 1)
        chain = Chain(number, kills, in_writing, in_training, same, seconds)
        with self.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(chain)) + "\n")
        if same:
            shutil.rmtree(run)
        else:
            run.rename(self.folder / f"differs-{number}")
        return chain

    def _expect_refusal(self, run: Path) -> None:
        """Resume the run with other data, which must be refused, and put the data back."""
        if not (run / "inputs.json").exists() or (run / "result.json").exists():
            return
        train = Path(str(self.options[self.options.index("--train") + 1]))
        whole = train.read_text(encoding="utf-8")
        first, second, *others = whole.splitlines(keepends=True)
        train.write_text("".join([second, first, *others]), encoding="utf-8")
        status = aang(["train", "--resume", run, "--quiet"], self.log).wait()
        train.write_text(whole, encoding="utf-8")
        if status != 2 or "the data has changed" not in self.log.read_text(encoding="utf-8"):
            raise SystemExit(f"{self.name}: changed data was not refused, see {self.log}")


def _elsewhere(folder: Path, threads: int) -> None:
    """Change the working directory and the number of threads."""
    os.chdir(folder)
    torch.set_num_threads(threads)


def _here() -> None:
    """Change nothing."""


def _wait_for_a_moment(draw: random.Random, pace: Pace, run: Path, process: Forked) -> None:
    kind = draw.random()
    if kind < BEFORE:
        moment = process.began + draw.uniform(0, pace.before)
    else:
        _opened(run, process)
        if kind < BEFORE + ANYWHERE:
            moment = time.monotonic() + draw.uniform(0, pace.training)
        else:
            # Counted in rounds, because their duration depends on the machine's other work.
            lines = _lines(run) + draw.randint(0, ROUNDS)
            while not process.ended() and _lines(run) < lines:
                time.sleep(_POLL)
            moment = time.monotonic() + draw.uniform(0, 2 * pace.line)
    while not process.ended() and (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, _POLL))


def _lines(run: Path) -> int:
    """Number of lines in all logs of a run."""
    logs = ("weights.jsonl", "metrics.jsonl", "pretraining/tapt/metrics.jsonl")
    return sum((run / log).read_bytes().count(b"\n") for log in logs if (run / log).exists())


def _opened(run: Path, process: Forked) -> float:
    """Wait until ``process`` has opened its run folder and return the seconds it took."""
    while not process.ended() and not _holds_lock(run, process.pid):
        time.sleep(_POLL)
    return time.monotonic() - process.began


def _holds_lock(run: Path, pid: int) -> bool:
    try:
        return bool(json.loads((run / "lock.json").read_text(encoding="utf-8"))["pid"] == pid)
    except (OSError, ValueError):
        return False


def contents(run: Path) -> dict[str, object]:
    """Everything in a run folder except times and memory figures."""
    found: dict[str, object] = {}
    for path in sorted(p for p in run.rglob("*") if p.is_file()):
        name = str(path.relative_to(run))
        if path.name in _TIMED:
            continue
        # Checkpoints are numbered in order, so their numbers depend on where a run was killed.
        name = "checkpoint/" + path.name if path.parent.parent.name == "checkpoints" else name
        content = path.read_bytes()
        if path.name in ("result.json", "stage.json"):
            found[name] = _untimed(json.loads(content))
        elif path.name == "cost.jsonl":
            found[name] = [_untimed(json.loads(line)) for line in content.splitlines()]
        else:
            found[name] = content
    return found


def _untimed(value: object) -> object:
    if isinstance(value, dict):
        clocks = ("train_seconds", "peak_memory_bytes", "seconds")
        return {k: _untimed(v) for k, v in value.items() if k not in clocks}
    return value


def table(cases: Sequence[Case]) -> Iterator[str]:
    """A line of Markdown for each case."""
    yield "| case | runs | kills | after the folder was opened | in the middle of writing | same |"
    yield "|---|---|---|---|---|---|"
    for case in cases:
        chains = case.chains()
        counts = [
            len(chains),
            *(sum(getattr(c, n) for c in chains) for n in ("kills", "in_training", "in_writing")),
            f"{sum(c.identical for c in chains)} of {len(chains)}",
        ]
        yield f"| {case.name} | {' | '.join(map(str, counts))} |"


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--kills", default=50, show_default=True, help="of each case")
@click.option("--case", "names", type=click.Choice(list(CASES)), multiple=True, default=CASES)
@click.option("--most", default=10, show_default=True, help="kills of one run")
@click.option("--minutes", type=float, help="begin no further run after that time")
@click.option(
    "--together", default=500, show_default=True, help="trials with two processes at once"
)
def main(
    out: Path, kills: int, names: Sequence[str], most: int, minutes: float | None, together: int
) -> None:
    """Kill, resume and compare runs, and print a table of the results."""
    began = time.monotonic()
    out = out.resolve()
    os.environ.setdefault("AANG_CACHE", str(out / "cache"))
    out.mkdir(parents=True, exist_ok=True)
    task = out / "task"
    if not (task / "encoder" / "config.json").exists():
        shutil.rmtree(task, ignore_errors=True)
        _in_another_process(task)

    def files_of(train: Path) -> list[object]:
        others = [p for name in ("dev", "test") for p in (f"--{name}", task / f"{name}.jsonl")]
        return ["--train", train, *others, "--model", task / "encoder"]

    data = files_of(task / "train.jsonl")
    import_what_a_run_needs(["train", *data, *COMMON, "--out", out / "first"], out / "modules.txt")
    met = resume_together(out / "together", together)
    # Its data changes, which other cases must not see.
    own = shutil.copyfile(task / "train.jsonl", out / "train.jsonl")
    cases = [
        Case(name, [*(files_of(own) if name == DISTURBED else data), *COMMON, *CASES[name]], out)
        for name in names
    ]
    for case in _in_turn(cases, kills):
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            break
        click.echo(f"{case.name}: {case.add_chain(min(most, kills - case.kills()))}", err=True)
    click.echo("\n".join(table(cases)))
    click.echo(str(met))
    if (
        met.both
        or met.neither
        or not all(chain.identical for case in cases for chain in case.chains())
    ):
        raise SystemExit(1)


def _in_turn(cases: Sequence[Case], kills: int) -> Iterator[Case]:
    """Cases that lack kills, in turn, so that every case has some when time is up."""
    while left := [case for case in cases if case.kills() < kills]:
        yield from left


def _in_another_process(task: Path) -> None:
    """Make the task in another process, so that its tokenizer's threads do not stay in this one."""

    def make() -> None:
        from benchmarks.small_task import write_task

        write_task(task)

    if Forked(make, task.with_suffix(".log")).wait() != 0:
        raise SystemExit(f"the task could not be made, see {task.with_suffix('.log')}")


if __name__ == "__main__":
    main()
