"""Speed and memory of reading S2ORC, from one shard to a hundred.

    python -m benchmarks.s2orc_reading CS_PAPERS TASK --shards 1 --shards 10 --shards 100

CS_PAPERS is a folder in S2ORC's layout of 2020, ``metadata`` beside ``pdf_parses``; TASK is a file
of a labelled task. Shards are made by repeating those of CS_PAPERS with changed ids and texts. Each
of these runs in a separate process, whose peak memory the system reports:

- reading all full texts, compared with ``gzip -dc`` of the same shards by CPU time;
- reading papers of a field and some years, with their metadata, four shards at a time;
- ``aang prepare-domain`` on the same papers.
"""

import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click

READ = """
import json, sys
from pathlib import Path
from aang_core import DataContext
from aang_plugin_s2orc.source import S2orc

options, *places = json.loads(sys.argv[1])
context = DataContext(train=(), domain=[Path(place) for place in places])
texts = characters = 0
for example in S2orc(**options).examples(context):
    texts += 1
    characters += len(example.text)
print(texts, characters)
"""


@dataclass(frozen=True)
class Measured:
    """CPU time of a process in seconds, and its peak memory in MB.

    The system counts the memory of the starting process as that of the started one. A lower peak is
    therefore unknown and given as 0.
    """

    seconds: float
    megabytes: float
    said: str

    @classmethod
    def of(cls, *command: object, out: int = subprocess.PIPE) -> "Measured":
        """Run a command to its end."""
        arguments = [str(part) for part in command]
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with subprocess.Popen(arguments, stdout=out, text=True) as process:
            said = process.stdout.read() if process.stdout else ""
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise click.ClickException(f"{arguments[:4]} ended with {process.returncode}")
        memory = used.ru_maxrss / 1024 if used.ru_maxrss > own else 0.0
        return cls(used.ru_utime + used.ru_stime, memory, said.strip())


@click.command()
@click.argument("papers", type=click.Path(path_type=Path, exists=True))
@click.argument("task", type=click.Path(path_type=Path, exists=True))
@click.option("--shards", multiple=True, type=int, default=(1, 10, 100), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def main(papers: Path, task: Path, shards: Sequence[int], as_json: bool) -> None:
    """Measure the reading of S2ORC."""
    rows: list[dict[str, Any]] = []
    for n in sorted(shards):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make_shards(papers, folder, n)
            rows += [{"shards": n, "what": what} | asdict(m) for what, m in measure(folder, task)]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    click.echo(f"{'shards':>6}  {'what':<14}{'s':>8}{'MB':>8}")
    for row in rows:
        click.echo(f"{row['shards']:>6}  {row['what']:<14}{row['seconds']:8.1f}", nl=False)
        click.echo(f"{row['megabytes']:8.0f}" if row["megabytes"] else f"{'–':>8}")


def make_shards(papers: Path, folder: Path, n: int) -> None:
    """Make ``n`` shards of each kind by repeating those of ``papers`` with changed texts."""
    for kind in ("metadata", "pdf_parses"):
        (folder / kind).mkdir()
        sources = cycle(sorted((papers / kind).glob("*.gz")))
        for i, source in enumerate(islice(sources, n)):
            content = gzip.decompress(source.read_bytes())
            changed = re.sub(rb'"(paper_id|text)": "', rb'"\1": "%d-' % i, content)
            if kind == "metadata":
                changed = changed.replace(b'"title":', b'"year": %d, "title":' % (1990 + i % 30))
            (folder / kind / f"{kind}_{i}.jsonl.gz").write_bytes(gzip.compress(changed, 6))


def measure(folder: Path, task: Path) -> list[tuple[str, Measured]]:
    """Run and measure everything on the shards in ``folder``."""
    filters = {"field": "Computer Science", "years": "1990-2019", "interleave": 4}
    parses = sorted((folder / "pdf_parses").iterdir())
    return [
        ("gzip -dc", Measured.of("gzip", "-dc", *parses, out=subprocess.DEVNULL)),
        ("full texts", _read(folder / "pdf_parses")),
        ("filters", _read(folder, **filters)),
        (
            "prepare-domain",
            Measured.of(
                *(sys.executable, "-m", "aang_core", "prepare-domain", folder, "--near", task),
                *("--dev", task, "--times", 1, "--out", folder / "out.parquet"),
                *(f"--{name}={value}" for name, value in list(filters.items())[:2]),
                *("--set", f"s2orc.interleave={filters['interleave']}"),
            ),
        ),
    ]


def _read(place: Path, **options: object) -> Measured:
    return Measured.of(sys.executable, "-c", READ, json.dumps([options, str(place)]))


if __name__ == "__main__":
    main()
