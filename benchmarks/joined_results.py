"""Join the results of comparisons that trained parts of one table, on one machine or on several.

    python -m benchmarks.joined_results OUT FOLDER... --baseline single-task

FOLDER is that of an ``aang compare``, or holds copies of its ``table.json`` and ``curves.csv``; OUT
gets both for all of them, with the tests against the baseline made anew. OUT may be one of them.
Where two have the same run, their scores must be the same, as they are on processors of one kind;
so a run or two that both have show that the others may stand in one table. Each method must have
been trained with one setting. Quick controls are never trained and not tested; theirs may differ,
and are those of the first folder that has the draw.
"""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from aang_plugin_compare.tables import Entry, judged, table

from aang_core.storage import write_file
from benchmarks.comparison_files import FOLDER

Line = Mapping[str, str]
"""A line of ``curves.csv``."""


@dataclass(frozen=True)
class Outcome:
    """What a comparison has found.

    Attributes:
        entries: the rows of its table.
        lines: those of its curves, one for each evaluation.
    """

    entries: Sequence[Entry]
    lines: Sequence[Line]

    @classmethod
    def of(cls, folder: Path) -> "Outcome":
        """The outcome of a comparison, or a copy of it."""
        return cls(read_table(folder), read_lines(folder))

    def only(self, methods: Collection[str]) -> "Outcome":
        """The outcome of these methods alone."""
        entries = [entry for entry in self.entries if entry.method in methods]
        return Outcome(entries, [line for line in self.lines if line["method"] in methods])

    def write(self, out: Path, baseline: str | None) -> None:
        """Write ``table.json`` and ``curves.csv``."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines)
        out.mkdir(parents=True, exist_ok=True)
        write_file(out / "table.json", table(self.entries, "json", baseline))
        write_file(out / "curves.csv", text.getvalue())


def joined(outcomes: Sequence[Outcome], baseline: str | None) -> Outcome:
    """The runs of all outcomes in one.

    Raises:
        click.ClickException: two have different scores for a run, or different settings.
    """
    entries = joined_entries([outcome.entries for outcome in outcomes], baseline)
    return Outcome(entries, list(joined_curves(outcome.lines for outcome in outcomes)))


def joined_entries(tables: Iterable[Sequence[Entry]], baseline: str | None) -> list[Entry]:
    """One entry for each task and method, with the runs of all tables.

    Args:
        tables: each comparison's.
        baseline: the method that the others are tested against.

    Raises:
        click.ClickException: two tables have different scores for a run, or different settings.
    """
    found: dict[tuple[str, str], list[Entry]] = {}
    for entries in tables:
        for entry in entries:
            found.setdefault((entry.task, entry.method), []).append(entry)
    whole = [_joined(parts) for parts in found.values()]
    seeds = {task: {s for e in whole if e.task == task for s in e.seeds} for task, _ in found}
    counted = [replace(e, missing=len(seeds[e.task]) - len(e.seeds)) for e in whole]
    return judged(sorted(counted, key=lambda e: not e.quick), baseline)


def _joined(parts: Sequence[Entry]) -> Entry:
    trained = [part for part in parts if part.seeds]
    first = trained[0] if trained else parts[0]
    runs: dict[int, tuple[float, float | None, float]] = {}
    for part in trained:
        if part.setting != first.setting:
            raise click.ClickException(
                f"{first.task}/{first.method}: one table has the setting {first.setting!r} and "
                f"another {part.setting!r}; give comparisons without a grid"
            )
        tests: Sequence[float | None] = part.test or [None] * len(part.seeds)
        for seed, dev, test, taken in zip(part.seeds, part.dev, tests, part.seconds, strict=True):
            known = runs.setdefault(seed, (dev, test, taken))
            if known[:2] != (dev, test) and not first.quick:
                raise click.ClickException(
                    f"{first.task}/{first.method}/seed-{seed}: scores {known[0]:.4f} on dev in one "
                    f"table and {dev:.4f} in another; they come from different processors, "
                    f"encoders or versions, so the rest cannot be compared either"
                )
    seeds = sorted(runs)
    of_test = [runs[seed][1] for seed in seeds]
    return replace(
        first,
        seeds=seeds,
        dev=[runs[seed][0] for seed in seeds],
        test=[score for score in of_test if score is not None],
        seconds=[runs[seed][2] for seed in seeds],
    )


def joined_curves(files: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """The lines of all files, each evaluation once."""
    seen = set()
    for lines in files:
        for line in lines:
            evaluation = tuple(line[name] for name in ("task", "method", "setting", "seed", "step"))
            if evaluation not in seen:
                seen.add(evaluation)
                yield line


def read_lines(folder: Path) -> list[Line]:
    """The lines of a comparison's ``curves.csv``, one for each evaluation."""
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_table(folder: Path) -> list[Entry]:
    """The rows of a comparison's ``table.json``."""
    return [Entry(**e) for e in json.loads((folder / "table.json").read_text(encoding="utf-8"))]


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.argument("folders", type=FOLDER, nargs=-1, required=True)
@click.option("--baseline", help="the method that the others are tested against")
def main(out: Path, folders: tuple[Path, ...], baseline: str | None) -> None:
    """Write both files of all folders."""
    whole = joined([Outcome.of(folder) for folder in folders], baseline)
    whole.write(out, baseline)
    click.echo(table(whole.entries, "text", baseline, difference=baseline is not None))


if __name__ == "__main__":
    main()
