"""What did the dev gradient say of each kind of objective? The cosines that runs have recorded.

    python -m benchmarks.recorded_cosines LEARNED
    python -m benchmarks.recorded_cosines LEARNED --after 300

LEARNED holds runs on td in folders ``seed-*``, of a weighter that measures cosines. For each run
and each output and representation, the table has the mean cosine with the dev gradient and, in
brackets, its t: the mean over its standard error. All cosines of a step share one dev gradient, so
they are averaged first, and a step counts once. A t below -2 says that training on such objectives
would have made the dev loss larger, as far as this signal can be trusted. ``--after`` and
``--until`` take the steps of a part of the training alone.
"""

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from aang_core.tasks.workbench import END_TASK
from benchmarks.comparison_files import FOLDER
from benchmarks.seed_runs import finished_runs
from benchmarks.signal_quality.figures import Figure


def kind(task: str) -> str:
    """The output and representation of an objective; the end task is its own kind."""
    if task == END_TASK:
        return "end task"
    _, _, representation, output = task.split("/")
    return f"{output}, {representation}"


def by_kind(steps: Iterable[Mapping[str, float]]) -> Mapping[str, Sequence[float]]:
    """The mean cosine of each kind of task in each step that measured one of that kind."""
    found: dict[str, list[float]] = {}
    for cosines in steps:
        of_step: dict[str, list[float]] = {}
        for task, cosine in cosines.items():
            of_step.setdefault(kind(task), []).append(cosine)
        for name, values in of_step.items():
            found.setdefault(name, []).append(statistics.mean(values))
    return found


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("learned_in", metavar="LEARNED", type=FOLDER)
@click.option("--after", default=0, type=click.IntRange(min=0), help="leave out steps up to this")
@click.option("--until", default=sys.maxsize, show_default="the end", help="the last step to take")
def main(learned_in: Path, after: int, until: int) -> None:
    """Print the table."""
    measured = {
        name: by_kind(line.cosines for line in run.records.rounds if after < line.step <= until)
        for name, run in finished_runs(learned_in).items()
    }
    kinds = sorted({name for found in measured.values() for name in found}, key=_place)
    if not kinds:
        raise click.ClickException(f"{learned_in}: no run measured cosines")
    click.echo(f"| kind | {' | '.join(measured)} |")
    click.echo("|---|" + len(measured) * "---|")
    for name in kinds:
        cells = (_cell(found.get(name, ())) for found in measured.values())
        click.echo(f"| {name} | {' | '.join(cells)} |")


def _place(name: str) -> tuple[bool, str]:
    return name != kind(END_TASK), name


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    figure = Figure.of(values)
    return f"{figure.value:+.4f} ({'–' if figure.t is None else f'{figure.t:+.1f}'})"


if __name__ == "__main__":
    main()
