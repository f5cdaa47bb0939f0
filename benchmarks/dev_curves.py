"""Draw dev scores over steps, rows and seconds, averaged over the draws that all methods have.

    python -m benchmarks.dev_curves FIGURE.png FOLDER... --method single-task --method contrast

FOLDER is that of an ``aang compare``, or holds a copy of its ``curves.csv``; each gets a row of the
figure. The band is one standard error of the mean on each side. Rows are those that went through
the encoder, and say what a step costs where seconds were taken on a busy machine.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.comparison_files import FOLDER
from benchmarks.joined_results import check_one_table, read_lines


@dataclass(frozen=True)
class Curve:
    """The dev score of a method after each number of steps that all draws have reached.

    Attributes:
        draws: how many draws.
        steps: numbers of steps.
        rows: mean number of rows that went through the encoder until then; NaN if a run did not
            record it.
        seconds: median of the training seconds until then, as one draw may have run on another
            machine; or NaN.
        scores: mean dev scores, in percent.
        errors: their standard errors; zero for a single draw.
    """

    draws: int
    steps: Sequence[int]
    rows: Sequence[float]
    seconds: Sequence[float]
    scores: Sequence[float]
    errors: Sequence[float]


class _Point(NamedTuple):
    rows: float
    seconds: float
    score: float


def read_curves(folder: Path, methods: Sequence[str] = ()) -> Mapping[str, Curve]:
    """The curve of each method in ``curves.csv``, averaged over the draws that all of them have.

    Args:
        folder: of the file.
        methods: the methods to read, if the file has them; all of them if empty.

    Raises:
        click.UsageError: the file has none of the methods.
        click.ClickException: no draw has all methods, or there are several tasks or settings.
    """
    lines = read_lines(folder)
    points: dict[str, dict[str, dict[int, _Point]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        rows, seconds = (float(line[name] or "nan") for name in ("rows", "seconds"))
        point = _Point(rows, seconds, 100 * float(line["dev"]))
        points[line["method"]][line["seed"]][int(line["step"])] = point
    chosen = {name: draws for name, draws in points.items() if not methods or name in methods}
    if not chosen:
        raise click.UsageError(f"{folder} has none of these methods, only {', '.join(points)}")
    check_one_table(
        folder,
        ((ln["task"], ln["method"], ln["setting"]) for ln in lines if ln["method"] in chosen),
    )
    shared = sorted(set.intersection(*(set(draws) for draws in chosen.values())))
    if not shared:
        raise click.ClickException(
            f"{folder}: {', '.join(chosen)} have no draw in common; choose with --method"
        )
    return {name: _averaged([draws[seed] for seed in shared]) for name, draws in chosen.items()}


def _averaged(draws: Sequence[Mapping[int, _Point]]) -> Curve:
    steps = sorted(set.intersection(*(set(draw) for draw in draws)))
    at = [[draw[step] for draw in draws] for step in steps]
    scores = [[point.score for point in points] for points in at]
    return Curve(
        len(draws),
        steps,
        [statistics.mean(point.rows for point in points) for points in at],
        [statistics.median(point.seconds for point in points) for points in at],
        [statistics.mean(s) for s in scores],
        [statistics.stdev(s) / len(s) ** 0.5 if len(s) > 1 else 0.0 for s in scores],
    )


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("figure", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("folders", type=FOLDER, nargs=-1, required=True)
@click.option("--title", "titles", multiple=True, help="of each row; default: the folder's name")
@click.option("--method", "methods", multiple=True, help="only these, in this order")
def main(
    figure: Path, folders: tuple[Path, ...], titles: tuple[str, ...], methods: tuple[str, ...]
) -> None:
    """Draw the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    titles = titles or tuple(folder.name for folder in folders)
    if len(titles) != len(folders):
        raise click.UsageError(f"{len(titles)} titles for {len(folders)} folders")
    of_folders = {folder: read_curves(folder, methods) for folder in folders}
    shown = methods or tuple(dict.fromkeys(name for c in of_folders.values() for name in c))
    colours = {name: f"C{place}" for place, name in enumerate(shown)}
    height = 2.6 * len(folders) + 0.4
    drawing, axes = pyplot.subplots(
        len(folders), 3, figsize=(13, height), squeeze=False, sharey="row"
    )
    for row, title, curves in zip(axes, titles, of_folders.values(), strict=True):
        for name in shown:
            if name not in curves:
                continue
            curve = curves[name]
            if any(math.isnan(number) for number in (*curve.rows, *curve.seconds)):
                raise click.ClickException(
                    f"{title}: {name} does not say how many rows or seconds it took; leave it out "
                    "with --method, or train it again"
                )
            ends = list(zip(curve.scores, curve.errors, strict=True))
            low, high = [score - e for score, e in ends], [score + e for score, e in ends]
            label = f"{name} ({curve.draws})"
            for axis, places in zip(row, (curve.steps, curve.rows, curve.seconds), strict=True):
                axis.plot(places, curve.scores, color=colours[name], label=label)
                axis.fill_between(places, low, high, color=colours[name], alpha=0.15, linewidth=0)
        for axis in row:
            axis.locator_params(axis="x", nbins=5)
        row[0].set_title(title, loc="left")
        row[0].set_ylabel("dev, percent")
        row[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small")
    for axis, label in zip(axes[-1], ("steps", "rows", "seconds of training"), strict=True):
        axis.set_xlabel(label)
    drawing.tight_layout()
    figure.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(figure, dpi=110)


if __name__ == "__main__":
    main()
