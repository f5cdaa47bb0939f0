"""Join the results of comparisons that trained parts of one table, on one machine or on several.

    python -m benchmarks.joined_results OUT FOLDER... --baseline single-task

FOLDER is that of an ``aang compare``, or holds copies of its ``table.json`` and ``curves.csv``; OUT
gets both for all of them, with the tests against the baseline made anew. OUT may be one of them.
Where two have the same run, their scores must be the same, as they are on processors of one kind;
so a run or two that both have show that the others may stand in one table; a note says where none
does. Each method must have been trained with one setting, and each task scored by one metric. Quick
controls are never trained and not tested; their scores may differ a little, and are those of the
first folder that has the draw. If they differ by more, the folders have other training rows.
"""

import csv
import io
import json
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import click
from aang_plugin_compare.curves import Point
from aang_plugin_compare.tables import Entry, judged, table

from aang_core.storage import write_file
from benchmarks.comparison_files import FOLDER

SOLVERS = 0.02
"""Scores of a quick control on the same rows differ by no more between processors."""

Line = Mapping[str, str]
"""A line of ``curves.csv``."""


@dataclass(frozen=True)
class Outcome:
    """The results of a comparison.

    Attributes:
        entries: the rows of its table.
        lines: the lines of its curves, one for each evaluation.
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

    def without_runs_of(self, others: Iterable["Outcome"]) -> "Outcome":
        """The outcome without the runs that others have; a method without runs keeps its entry.

        Quick controls stay, since their scores show whether both have the same training rows.
        """
        entries = [entry for other in others for entry in other.entries if not entry.quick]
        taken = {run for entry in entries for run in _runs(entry)}
        lines = [
            line
            for line in self.lines
            if (line["task"], line["method"], int(line["seed"])) not in taken
        ]
        return Outcome([_without(entry, taken) for entry in self.entries], lines)

    def write(self, out: Path, baseline: str | None) -> None:
        """Write ``table.json`` and ``curves.csv``."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [field.name for field in fields(Point)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines)
        out.mkdir(parents=True, exist_ok=True)
        write_file(out / "table.json", table(self.entries, "json", baseline))
        write_file(out / "curves.csv", text.getvalue())


def joined(outcomes: Sequence[Outcome], baseline: str | None) -> Outcome:
    """The runs of all outcomes in one.

    Raises:
        click.ClickException: as for `joined_entries`.
    """
    entries = joined_entries([outcome.entries for outcome in outcomes], baseline)
    return Outcome(entries, list(joined_curves(outcome.lines for outcome in outcomes)))


def joined_entries(tables: Iterable[Sequence[Entry]], baseline: str | None) -> list[Entry]:
    """One entry for each task and method, with the runs of all tables.

    Args:
        tables: the table of each comparison.
        baseline: the method that the others are tested against.

    Raises:
        click.ClickException: two tables have different scores for a run, different settings of a
            method or metrics of a task, or scores on test for only some runs of a method.
    """
    found: dict[tuple[str, str], list[Entry]] = {}
    for entries in tables:
        for entry in entries:
            found.setdefault((entry.task, entry.method), []).append(entry)
    _check_metrics([part for parts in found.values() for part in parts])
    whole = [_joined(parts) for parts in found.values()]
    seeds = {task: {s for e in whole if e.task == task for s in e.seeds} for task, _ in found}
    counted = [replace(e, missing=len(seeds[e.task]) - len(e.seeds)) for e in whole]
    return judged(sorted(counted, key=lambda e: not e.quick), baseline)


def _check_metrics(entries: Iterable[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        if not entry.seeds:
            continue  # Without a finished run, no metric is known.
        other = first.setdefault(entry.task, entry)
        if entry.metric != other.metric:
            raise click.ClickException(
                f"{entry.task}/{entry.method}: scores are {entry.metric}, and those of "
                f"{other.task}/{other.method} {other.metric}; give comparisons with one metric"
            )


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
        if bool(part.test) != bool(first.test):
            raise click.ClickException(
                f"{first.task}/{first.method}: one table has scores on test and another has none; "
                f"give comparisons with the same test set"
            )
        tests: Sequence[float | None] = part.test or [None] * len(part.seeds)
        for seed, dev, test, taken in zip(part.seeds, part.dev, tests, part.seconds, strict=True):
            known = runs.setdefault(seed, (dev, test, taken))
            apart = max(
                abs((a or 0) - (b or 0)) for a, b in zip(known[:2], (dev, test), strict=True)
            )
            if apart > (SOLVERS if first.quick else 0):
                why = "they come from different processors, encoders or versions"
                if first.quick:
                    why = "solvers differ by less, so the two have other training rows"
                raise click.ClickException(
                    f"{first.task}/{first.method}/seed-{seed}: scores {known[0]:.4f} on dev in one "
                    f"table and {dev:.4f} in another; {why}, so the rest cannot be compared either"
                )
    seeds = sorted(runs)
    of_test = [runs[seed][1] for seed in seeds]
    # A table has only the mean of its runs; use that of the table with most runs.
    by_size = sorted(trained, key=lambda part: len(part.seeds))
    rows = {seed: part.rows for part in by_size for seed in part.seeds}
    known_rows = [count for count in rows.values() if count is not None]
    return replace(
        first,
        seeds=seeds,
        dev=[runs[seed][0] for seed in seeds],
        test=[score for score in of_test if score is not None],
        seconds=[runs[seed][2] for seed in seeds],
        rows=statistics.mean(known_rows) if known_rows and len(known_rows) == len(rows) else None,
        dev_intervals=_intervals(trained, "dev_intervals", seeds),
        test_intervals=_intervals(trained, "test_intervals", seeds),
    )


def _intervals(parts: Sequence[Entry], name: str, seeds: Sequence[int]) -> list[Sequence[float]]:
    """The interval of each seed's run, or none if a table of these runs has none."""
    known: dict[int, Sequence[float]] = {}
    for part in reversed(parts):
        known |= dict(zip(part.seeds, getattr(part, name), strict=False))
    return [known[seed] for seed in seeds] if known.keys() >= set(seeds) else []


Run = tuple[str, str, int]
"""A run's task, method and seed."""


def _runs(entry: Entry) -> set[Run]:
    return {(entry.task, entry.method, seed) for seed in entry.seeds}


def _without(entry: Entry, runs: Collection[Run]) -> Entry:
    kept = [i for i, s in enumerate(entry.seeds) if (entry.task, entry.method, s) not in runs]
    seeds = [entry.seeds[i] for i in kept]
    return replace(
        entry,
        seeds=seeds,
        dev=[entry.dev[i] for i in kept],
        test=[entry.test[i] for i in kept] if entry.test else [],
        seconds=[entry.seconds[i] for i in kept],
        dev_intervals=_intervals([entry], "dev_intervals", seeds),
        test_intervals=_intervals([entry], "test_intervals", seeds),
    )


def tasks_apart(tables: Sequence[Sequence[Entry]]) -> list[str]:
    """The tasks for which some tables share no trained run, not even through other tables."""
    apart = []
    for task in dict.fromkeys(entry.task for entries in tables for entry in entries):
        groups: list[set[Run]] = []
        for entries in tables:
            trained = [entry for entry in entries if entry.task == task and not entry.quick]
            group = {run for entry in trained for run in _runs(entry)}
            if not group:
                continue
            linked = [other for other in groups if other & group]
            groups = [other for other in groups if not other & group]
            groups.append(group.union(*linked))
        if len(groups) > 1:
            apart.append(task)
    return apart


def check_one_table(place: object, cells: Iterable[tuple[str, str, str]]) -> None:
    """Check that results which only their method distinguishes belong to one table.

    Args:
        place: where they are, for the message.
        cells: task, method and setting of each.

    Raises:
        click.ClickException: there are several tasks, or several settings of a method.
    """
    tasks: set[str] = set()
    settings: dict[str, set[str]] = {}
    for task, method, setting in cells:
        tasks.add(task)
        settings.setdefault(method, set()).add(setting)
    if len(tasks) > 1:
        raise click.ClickException(
            f"{place} has the tasks {' and '.join(sorted(tasks))}; give a comparison for each"
        )
    for method, of_method in settings.items():
        if len(of_method) > 1:
            named = " and ".join(repr(setting) for setting in sorted(of_method))
            raise click.ClickException(
                f"{place}: {method} has the settings {named}; give a comparison without a grid"
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
    outcomes = [Outcome.of(folder) for folder in folders]
    whole = joined(outcomes, baseline)
    whole.write(out, baseline)
    for task in tasks_apart([outcome.entries for outcome in outcomes]):
        click.echo(
            f"note: {task}: two tables have no run in common: nothing shows that both were "
            f"trained alike",
            err=True,
        )
    click.echo(table(whole.entries, "text", baseline, difference=baseline is not None))


if __name__ == "__main__":
    main()
