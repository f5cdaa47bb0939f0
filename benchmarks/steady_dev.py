"""Compare a method's dev score in two settings, little helped by how often it was measured.

    python -m benchmarks.steady_dev --pair BEFORE AFTER --method contrast --around 1

A run's dev score is the best of its evaluations, so a longer training has a higher one by luck
alone. This prints the mean of the best evaluation and of ``--around`` evaluations on each side of
it, for each draw that both have. BEFORE and AFTER are folders of an ``aang compare``, or hold a
copy of its ``curves.csv``; ``--pair`` is given once for each task.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from aang_plugin_compare.statistics import paired_t_p
from aang_plugin_compare.tables import plain_table

from benchmarks.comparison_files import FOLDER
from benchmarks.joined_results import check_one_table, read_lines
from benchmarks.overview import p_text


def steady_score(scores: Sequence[float], around: int) -> float:
    """The mean of the best score and of its neighbours; the first of several best ones counts.

    Args:
        scores: of the evaluations of a run, in order.
        around: how many neighbours on each side; those beyond an end are left out.
    """
    best = max(range(len(scores)), key=scores.__getitem__)
    return statistics.mean(scores[max(0, best - around) : best + around + 1])


def read_scores(folder: Path, method: str) -> Mapping[int, Sequence[float]]:
    """The dev scores of each draw of a method, in percent, in the order of steps.

    Raises:
        click.ClickException: the folder has no evaluation of the method, or has several tasks or
            settings.
    """
    lines = [line for line in read_lines(folder) if line["method"] == method]
    check_one_table(folder, ((line["task"], method, line["setting"]) for line in lines))
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for line in lines:
        found[int(line["seed"])][int(line["step"])] = 100 * float(line["dev"])
    if not found:
        raise click.ClickException(f"{folder} has no evaluation of {method}")
    return {seed: [scores[step] for step in sorted(scores)] for seed, scores in found.items()}


@click.command(help=__doc__, context_settings={"show_default": True})
@click.option(
    "--pair",
    "pairs",
    type=(FOLDER, FOLDER),
    multiple=True,
    required=True,
    metavar="BEFORE AFTER",
    help="two settings of a task; may be given again",
)
@click.option("--method", required=True, help="the method")
@click.option("--around", type=click.IntRange(min=0), default=1, help="evaluations on each side")
def main(pairs: Sequence[tuple[Path, Path]], method: str, around: int) -> None:
    """Print both scores of each draw and what they differ by."""
    rows: list[Sequence[str]] = []
    olds: list[float] = []
    news: list[float] = []
    for before, after in pairs:
        known, new = read_scores(before, method), read_scores(after, method)
        shared = sorted(known.keys() & new.keys())
        if not shared:
            raise click.ClickException(f"{before} and {after} have no draw of {method} in common")
        for seed in shared:
            old, now = steady_score(known[seed], around), steady_score(new[seed], around)
            olds.append(old)
            news.append(now)
            rows.append([after.name, str(seed), f"{old:.1f}", f"{now:.1f}", f"{now - old:+.1f}"])
    click.echo(plain_table(["after", "draw", "before", "after", "difference"], rows, markdown=True))
    gain = statistics.mean(news) - statistics.mean(olds)
    click.echo(f"{len(rows)} draws: {gain:+.2f}, p t-test {p_text(paired_t_p(news, olds))}")


if __name__ == "__main__":
    main()
