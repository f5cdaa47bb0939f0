"""A stream of S2ORC shards of many gigabytes, read by several processes that train together.

    python -m benchmarks.stream_reading --gigabytes 10
    python -m benchmarks.stream_reading --gigabytes 100

`benchmarks.s2orc_reading` reads whole corpora once, in one process. This one reads, tokenises and
compares block after block as training on a stream does, without the steps between, and only for
``--seconds`` at each of three places: at the beginning of a pass, from the middle of a shard in the
middle of the pass, and from its last shards on into the next pass.

Two shards in S2ORC's layout of 2020 are made from a seed. All others are hard links to them, so a
hundred gigabytes take the disk space of two shards. The reader cannot tell: it opens, decompresses
and parses every file, and each has a position of its own. But the files come from memory and not
from the disk, so the figures are about the processor.

At each place the position in the shards must move on by as many texts as were read, or the
benchmark fails: no text may be left out or come twice. Each place is then read again from its
position, and the rows must be the same. Printed for each number of processes, from the slowest:

- rows that each process reads in a second of the clock, at the middle;
- CPU seconds of each process for a million rows there, of reading and of tokenising;
- CPU seconds until the first rows are there, and until they are there again in the middle;
- bytes of the position in a checkpoint;
- the resident memory of a process before it reads, at each place, and at its highest.
"""

import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang_core.tasks.processes import ALONE, Processes

if TYPE_CHECKING:
    from aang.assembly.stream_rows import StreamRows
    from aang.corpora.tokens import TokenRows

DISTINCT = 2
"""Number of shards that are written; the others are links to them."""
PARAGRAPHS = 40
"""Paragraphs of a paper; with about 700 characters each they make the 29 kB of a typical paper."""
ENCODER = Path(__file__).parents[1] / "plugins" / "aang" / "aang" / "assets" / "demo-encoder"
PLACES = ("beginning", "middle", "end")
MB = 1e6


@dataclass(frozen=True)
class Place:
    """What one process measured at a place of the pass.

    Attributes:
        rows: texts read and tokenised after the first block there.
        seconds: wall-clock seconds in which it read them.
        megabytes: read from files in that time, compressed.
        reading: CPU seconds of reading them.
        tokenising: CPU seconds of tokenising them.
        begin: CPU seconds until the first block was there.
        position: bytes of the position in a checkpoint.
        memory: resident MB at the end.
    """

    rows: int
    seconds: float
    megabytes: float
    reading: float
    tokenising: float
    begin: float
    position: int
    memory: float


@dataclass(frozen=True)
class Reading:
    """What one process measured; memory is in MB, before it reads and at the highest."""

    places: dict[str, Place]
    before: float
    highest: float


@click.command()
@click.option("--gigabytes", default=10.0, show_default=True, help="of compressed shards")
@click.option("--shard-megabytes", default=50.0, show_default=True, help="of a shard")
@click.option("--processes", "sizes", multiple=True, type=int, default=(1, 2, 4), show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="of reading at each place")
@click.option("--buffer", default=10_000, show_default=True, help="texts of a block")
@click.option("--interleave", default=4, show_default=True, help="shards open at a time")
@click.option("--out", type=click.Path(path_type=Path), help="file for the numbers, in JSON")
def main(
    gigabytes: float,
    shard_megabytes: float,
    sizes: Sequence[int],
    seconds: float,
    buffer: int,
    interleave: int,
    out: Path | None,
) -> None:
    """Measure and print the table."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "papers"
        papers = make_shards(Path(name), folder, gigabytes * 1e3, shard_megabytes)
        size_of_all = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
        texts = PARAGRAPHS * sum(papers.values())
        click.echo(f"{len(papers)} shards, {size_of_all:.1f} GB, {texts / 1e6:.1f} million texts")
        click.echo(
            "| processes | rows/s | reading | tokenising | first rows | in the middle | position "
            "| memory before | beginning | middle | end | highest |"
        )
        click.echo("|" + 12 * "---|")
        job = {"folder": str(folder), "papers": papers, "seconds": seconds, "buffer": buffer}
        job["interleave"] = interleave
        for size in sizes:
            readings = measured(size, Path(name) / "job.json", job)
            found.append({"processes": size, "read": [asdict(one) for one in readings]})
            click.echo(line(size, readings))
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def line(size: int, readings: Sequence[Reading]) -> str:
    """A row of the table; with several processes, the slowest and the one with most memory."""
    slow = min((one.places for one in readings), key=_speed)
    large = max(readings, key=lambda one: one.highest)
    middle = slow["middle"]
    memory = [large.before, *(large.places[name].memory for name in PLACES), large.highest]
    return (
        f"| {size} | {_speed(slow):.0f} "
        f"| {1e6 * middle.reading / middle.rows:.0f} s "
        f"| {1e6 * middle.tokenising / middle.rows:.0f} s "
        f"| {slow['beginning'].begin:.1f} s | {middle.begin:.1f} s | {middle.position} B | "
        + " | ".join(f"{megabytes:.0f} MB" for megabytes in memory)
        + " |"
    )


def _speed(places: Mapping[str, Place]) -> float:
    return places["middle"].rows / places["middle"].seconds


def make_shards(
    made: Path, folder: Path, megabytes: float, shard: float, seed: int = 0
) -> dict[str, int]:
    """Write shards of some megabytes below ``made``, and fill ``folder`` with links to them.

    Returns:
        The number of papers in each shard, in the order in which they are read.
    """
    from aang_plugin_demo.documentation import load_demo_task

    demo = load_demo_task()
    pool = [example.text for example in (*demo.train, *demo.test)] + list(demo.domain)
    draw = random.Random(seed)
    originals: list[tuple[Path, int]] = []
    number = max(1, round(megabytes / shard))
    for i in range(min(DISTINCT, number)):
        path, papers = made / f"original_{i}.jsonl.gz", 0
        with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb") as zipped:
            while file.tell() < shard * MB:
                body = [{"text": " ".join(draw.choices(pool, k=3))} for _ in range(PARAGRAPHS)]
                paper = {"paper_id": f"{i}-{papers}", "abstract": [], "body_text": body}
                zipped.write(json.dumps(paper).encode() + b"\n")
                papers += 1
        originals.append((path, papers))
    folder.mkdir()
    contents = {}
    for i, (path, papers) in zip(range(number), itertools.cycle(originals), strict=False):
        link = folder / f"pdf_parses_{i:05d}.jsonl.gz"
        link.hardlink_to(path)
        contents[link.name] = papers
    return contents


def measured(size: int, file: Path, job: dict[str, Any]) -> list[Reading]:
    """What ``size`` processes measure when they do the ``job``, which is written to ``file``."""
    file.write_text(json.dumps(job), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(size)]
    command += ["-m", "benchmarks.stream_reading", "worker", str(file)]
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        command, env={**os.environ, **threads}, stdout=subprocess.PIPE, check=True
    )
    return [
        Reading(**{**one, "places": {name: Place(**p) for name, p in one["places"].items()}})
        for one in json.loads(done.stdout)
    ]


def worker(job: dict[str, Any]) -> None:
    """Read in one of the processes; the first prints what all have measured."""
    import torch

    from aang_core.tasks.processes import processes_of_environment

    torch.set_num_threads(1)
    processes = processes_of_environment(torch.device("cpu"))
    said = processes.gather(json.dumps(asdict(read(job, processes))))
    if processes.first:
        print(json.dumps([json.loads(process) for process in said]))


def read(job: dict[str, Any], processes: Processes = ALONE) -> Reading:
    """Do the job from `main` in this process.

    Raises:
        AssertionError: texts were left out or read twice, or a position leads elsewhere.
    """
    stream = Stream(job, processes)
    before = resident()
    places = {name: stream.read_at(name) for name in PLACES}
    return Reading(places, before, highest())


class Stream:
    """The shards of a job, read by this process."""

    def __init__(self, job: dict[str, Any], processes: Processes) -> None:
        from aang.modeling import load_tokenizer

        self._job = job
        self._processes = processes
        self._tokenizer = load_tokenizer(str(ENCODER))
        self._tokenising = 0.0

    def read_at(self, name: str) -> Place:
        """Read at the place of this name for the job's seconds.

        Raises:
            AssertionError: as for `read`.
        """
        job, start = self._job, self._position(name)
        began = time.process_time()
        rows = self._opened(start)
        begin = time.process_time() - began
        first, count = rows.state_dict(), 0
        clock, work, megabytes = time.perf_counter(), time.process_time(), megabytes_read()
        self._tokenising = 0.0
        while self._processes.agree([time.perf_counter() - clock])[0] < job["seconds"]:
            rows.after_step(1)
            count += len(rows)
        seconds, work = time.perf_counter() - clock, time.process_time() - work
        megabytes, tokenising = megabytes_read() - megabytes, self._tokenising
        memory, position = resident(), json.dumps(rows.state_dict())
        total = PARAGRAPHS * sum(job["papers"].values())
        assert (self._before(json.loads(position)) - self._before(first) - count) % total == 0
        assert self._opened(json.loads(position)).digest == rows.digest
        return Place(
            *(count, seconds, megabytes, work - tokenising, tokenising, begin),
            *(len(position), memory),
        )

    def _opened(self, position: dict[str, Any] | None) -> "StreamRows":
        """The rows from a position on, opened as when training begins or is resumed."""
        from aang.assembly.stream_rows import StreamRows
        from aang_plugin_s2orc.source import S2orc

        from aang_core import DataContext

        source = S2orc(stream=True, buffer=self._job["buffer"], interleave=self._job["interleave"])
        texts = source.stream(DataContext(train=(), domain=[Path(self._job["folder"])]))
        if position is not None:
            texts.load_state_dict(position)
        return StreamRows(texts, self._job["buffer"], 1, self._tokenised, "s2orc", self._processes)

    def _tokenised(self, examples: Any) -> "TokenRows":
        from aang.corpora.tokens import tokenize

        before = time.process_time()
        rows = tokenize(examples, self._tokenizer, max_length=128, cache=None)
        self._tokenising += time.process_time() - before
        return rows

    def _position(self, name: str) -> dict[str, Any] | None:
        """The position in a pass whose open shards are read half; None for the beginning."""
        if name == "beginning":
            return None
        papers = self._job["papers"]
        names = list(papers)
        last = len(names) if name == "end" else (len(names) + self._job["interleave"]) // 2
        opened = names[max(0, last - self._job["interleave"]) : last]
        # Little is left in the last shards, so that the next pass begins soon.
        left = {"middle": 0.5, "end": 0.001}[name]
        lanes = [[f"0/{shard}", papers[shard] - int(left * papers[shard])] for shard in opened]
        return {"lanes": lanes, "given": 0, "opened": f"0/{opened[-1]}", "found": True}

    def _before(self, position: dict[str, Any]) -> int:
        """The number of texts of a pass before a position."""
        papers: dict[str, int] = self._job["papers"]
        opened: dict[str, int] = {name.partition("/")[2]: done for name, done in position["lanes"]}
        newest = position["opened"].partition("/")[2]
        closed = sum(count for name, count in papers.items() if name <= newest)
        left = sum(papers[name] - done for name, done in opened.items())
        return PARAGRAPHS * (closed - left) + int(position["given"])


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def highest() -> float:
    """The most resident memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) * 1024 / MB


def megabytes_read() -> float:
    """Megabytes that this process has read from files, whether from the disk or from memory."""
    return int(Path("/proc/self/io").read_text().split()[1]) / MB


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    else:
        main()
