"""Every method in every setting, and its lead over the baseline over all draws together.

    python -m benchmarks.overview --setting "SciERC, 500" FOLDER --setting demo FOLDER \\
        --baseline single-task

FOLDER is that of an ``aang compare``, or holds a copy of its ``table.json``. The first table has a
row for each method: mean test score and, in brackets, the lead over the baseline on the same draws,
in points. The second says of each method what it adds over all settings: how many draws it shares
with the baseline, its mean lead over settings and over draws, the p value of the paired t-test over
the draws of all settings (AANG, section 7) and its Holm correction for all methods of the table.
Quick controls are not tested. Folders of one setting, given under the same name, are joined as by
``benchmarks.joined_results``; a setting has one task. ``--called NAME OTHER`` counts a method as
another one, which has that name in other settings.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from aang_plugin_compare.statistics import holm, paired_t_p
from aang_plugin_compare.tables import Entry, plain_table

from benchmarks.comparison_files import FOLDER
from benchmarks.joined_results import check_one_table, joined_entries, read_table

Scores = Mapping[int, float]
"""A method's score on test by draw, in percent."""

Settings = Mapping[str, Mapping[str, Scores]]
"""The scores of each method by setting."""


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of the baseline, over all settings that trained both.

    Attributes:
        settings: how many settings.
        draws: how many draws, over all settings.
        of_settings: mean lead of a setting, in points.
        of_draws: mean lead of a draw, in points.
        p: p value of the paired t-test over all draws; None if there are too few.
    """

    settings: int
    draws: int
    of_settings: float
    of_draws: float
    p: float | None


def scores_of(entries: Sequence[Entry]) -> Mapping[str, Scores]:
    """The scores of each method that has finished runs, without methods that had none."""
    return {
        entry.method: {s: 100 * x for s, x in zip(entry.seeds, entry.test, strict=True)}
        for entry in entries
        if entry.test
    }


def pairs(method: Scores, baseline: Scores) -> list[tuple[float, float]]:
    """The scores of both on the draws that both have."""
    return [(method[draw], baseline[draw]) for draw in sorted(method.keys() & baseline.keys())]


def lead(method: str, baseline: str, settings: Settings) -> Lead | None:
    """The lead of a method; None if no setting trained both on the same draw."""
    found = [
        shared
        for methods in settings.values()
        if method in methods and baseline in methods
        if (shared := pairs(methods[method], methods[baseline]))
    ]
    if not found:
        return None
    every = [pair for shared in found for pair in shared]
    return Lead(
        len(found),
        len(every),
        statistics.mean(_mean_lead(shared) for shared in found),
        _mean_lead(every),
        paired_t_p([own for own, _ in every], [theirs for _, theirs in every]),
    )


def _mean_lead(shared: Sequence[tuple[float, float]]) -> float:
    return statistics.mean(own - theirs for own, theirs in shared)


def by_setting(methods: Sequence[str], baseline: str, settings: Settings) -> str:
    """The table of mean scores, in Markdown."""
    rows = []
    for method in methods:
        row = [f"`{method}`"]
        for scores in settings.values():
            if method not in scores:
                row.append("–")
                continue
            cell = f"{statistics.mean(scores[method].values()):.1f}"
            shared = pairs(scores[method], scores.get(baseline, {}))
            if method != baseline and shared:
                cell += f" ({_mean_lead(shared):+.1f})"
            draws = len(scores[method])
            row.append(cell + (f", {draws} draws" if draws > 1 else ", 1 draw"))
        rows.append(row)
    return plain_table(["method", *settings], rows, markdown=True)


def over_settings(methods: Sequence[str], baseline: str, settings: Settings) -> str:
    """The table of leads over all settings, in Markdown."""
    leads = {m: found for m in methods if m != baseline if (found := lead(m, baseline, settings))}
    corrected = holm([found.p for found in leads.values()])
    rows = [
        [
            f"`{method}`",
            str(found.settings),
            str(found.draws),
            f"{found.of_settings:+.1f}",
            f"{found.of_draws:+.1f}",
            p_text(found.p),
            p_text(p),
        ]
        for (method, found), p in zip(leads.items(), corrected, strict=True)
    ]
    header = ["method", "settings", "draws", "lead, mean of settings", "lead, mean of draws"]
    return plain_table([*header, "p t-test", "p corrected"], rows, markdown=True)


def p_text(p: float | None) -> str:
    """A p value as text; a dash if there is none."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@click.command(help=__doc__)
@click.option(
    "--setting",
    "given",
    type=(str, FOLDER),
    multiple=True,
    required=True,
    metavar="NAME FOLDER",
    help="a setting; may be given again",
)
@click.option("--baseline", required=True, help="the method that the others are compared with")
@click.option("--method", "chosen", multiple=True, help="only these, in this order")
@click.option(
    "--called",
    type=(str, str),
    multiple=True,
    metavar="NAME OTHER",
    help="count the method NAME as OTHER; may be given again",
)
def main(
    given: Sequence[tuple[str, Path]],
    baseline: str,
    chosen: tuple[str, ...],
    called: Sequence[tuple[str, str]],
) -> None:
    """Print both tables."""
    folders: dict[str, list[Path]] = {}
    for name, folder in given:
        folders.setdefault(name, []).append(folder)
    entries = {
        name: joined_entries([_renamed(folder, dict(called)) for folder in of_setting], baseline)
        for name, of_setting in folders.items()
    }
    for name, of_setting in entries.items():
        check_one_table(name, ((e.task, e.method, e.setting) for e in of_setting))
    settings = {name: scores_of(of_setting) for name, of_setting in entries.items()}
    quick = {e.method for of_setting in entries.values() for e in of_setting if e.quick}
    trained = list(dict.fromkeys(m for methods in settings.values() for m in methods))
    if missing := {baseline, *chosen} - set(trained):
        raise click.ClickException(f"no setting has {min(missing)}, only {', '.join(trained)}")
    methods = list(chosen) or trained
    click.echo(by_setting(methods, baseline, settings))
    tested = [method for method in methods if method not in quick]
    click.echo(over_settings(tested, baseline, settings))


def _renamed(folder: Path, called: Mapping[str, str]) -> list[Entry]:
    """The entries of a folder, with methods renamed by ``called``.

    Raises:
        click.ClickException: two methods of the folder would have the same name.
    """
    entries = read_table(folder)
    own = {entry.method for entry in entries}
    for name, other in called.items():
        if {name, other} <= own:
            raise click.ClickException(f"{folder} has {other}, so {name} cannot be counted as it")
    return [replace(entry, method=called.get(entry.method, entry.method)) for entry in entries]


if __name__ == "__main__":
    main()
