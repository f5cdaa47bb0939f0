"""Do learned weights go to the objectives that are best alone? A table, correlations and a figure.

    python -m benchmarks.learned_weights LEARNED OUT --alone ALONE

LEARNED holds runs of ``factored`` on td in folders ``seed-*``; ALONE is the folder of a comparison,
or holds a copy of its ``table.json``, in which each objective of td was trained alone, with the
names of ``benchmarks.table_methods.OBJECTIVES``. OUT gets ``objectives.csv``, with every number,
and with ALONE ``weights.png``. A weight is the mean over the last half of the training, as in
Figure 5 of AANG. Without ALONE, only the weights of the seeds are compared, with each other.
"""

import csv
import itertools
import json
import statistics
from collections.abc import Mapping
from pathlib import Path

import click
from scipy.stats import spearmanr

from benchmarks.comparison_files import FOLDER
from benchmarks.seed_runs import finished_runs
from benchmarks.table_methods import OBJECTIVES

Columns = Mapping[str, Mapping[str, float]]
"""A value of each objective, by seed or file."""


def learned(folder: Path) -> Columns:
    """The mean weight of each objective over the last half of each run, in percent."""
    weights = {
        name.removeprefix("seed-"): run.records.mean_weights(0.5, 1.0)
        for name, run in finished_runs(folder).items()
    }
    return {
        seed: {name: 100 * of_seed[full] for name, full in OBJECTIVES.items()}
        for seed, of_seed in weights.items()
    }


def alone(folder: Path, part: str) -> Columns:
    """The score of each objective alone by seed, on ``dev`` or ``test``, in percent.

    Raises:
        click.ClickException: an objective was not trained, or no seed has all objectives.
    """
    rows = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    scores = {
        # Without a test set, a table has no scores on test.
        row["method"]: dict(zip(row["seeds"], row[part], strict=bool(row[part])))
        for row in rows
        if row["method"] in OBJECTIVES
    }
    if missing := OBJECTIVES.keys() - scores.keys():
        raise click.ClickException(f"{folder}: {min(missing)} was not trained alone")
    # While a comparison is running, some objectives may lack a seed that others have.
    shared = sorted(set.intersection(*(set(of_seeds) for of_seeds in scores.values())))
    if not shared:
        raise click.ClickException(f"{folder}: no seed has a score on {part} of every objective")
    return {str(seed): {name: 100 * scores[name][seed] for name in OBJECTIVES} for seed in shared}


def mean(columns: Columns) -> Mapping[str, float]:
    """The mean over seeds."""
    return {
        name: statistics.mean(column[name] for column in columns.values()) for name in OBJECTIVES
    }


def correlation(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[float, float]:
    """Spearman's rank correlation over the objectives, and its p."""
    found = spearmanr([a[name] for name in OBJECTIVES], [b[name] for name in OBJECTIVES])
    return float(found.statistic), float(found.pvalue)


def agreement(columns: Columns) -> float:
    """The mean rank correlation between two seeds: what is repeatable in these numbers."""
    pairs = itertools.combinations(columns.values(), 2)
    return statistics.mean(correlation(a, b)[0] for a, b in pairs)


@click.command(help=__doc__)
@click.argument("learned_in", metavar="LEARNED", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--alone", "alone_in", type=FOLDER, help="comparison of single objectives")
def main(learned_in: Path, out: Path, alone_in: Path | None) -> None:
    """Print the table and the correlations, and write the files."""
    weights = learned(learned_in)
    dev, test = (alone(alone_in, part) if alone_in else {} for part in ("dev", "test"))
    out.mkdir(parents=True, exist_ok=True)
    _write(weights, dev, test, out / "objectives.csv")
    ranking = mean(dev) if dev else mean(weights)
    click.echo(f"| objective |{' dev alone | test alone |' if dev else ''} weight by seed |")
    click.echo("|---|" + ("---|---|" if dev else "") + "---|")
    for name in sorted(OBJECTIVES, key=lambda name: -ranking[name]):
        scores = f" {mean(dev)[name]:.2f} | {mean(test)[name]:.2f} |" if dev else ""
        by_seed = " ".join(f"{column[name]:.2f}" for column in weights.values())
        click.echo(f"| `{name}` |{scores} {by_seed} |")
    click.echo("\nRank correlations over the objectives:")
    if len(weights) > 1:
        click.echo(f"weights of two seeds: {agreement(weights):+.2f}")
    if dev:
        _draw(weights, dev, out / "weights.png")
        _correlate(weights, dev, test)


def _correlate(weights: Columns, dev: Columns, test: Columns) -> None:
    for seed, column in weights.items():
        rho, p = correlation(column, mean(dev))
        click.echo(f"weight of seed {seed} and dev alone: {rho:+.2f} (p = {p:.3f})")
    rho, p = correlation(mean(weights), mean(dev))
    click.echo(f"mean weight and dev alone: {rho:+.2f} (p = {p:.3f})")
    if len(dev) > 1:
        click.echo(f"dev alone of two seeds: {agreement(dev):+.2f}")
    click.echo(f"dev alone and test alone: {correlation(mean(dev), mean(test))[0]:+.2f}")


def _write(weights: Columns, dev: Columns, test: Columns, path: Path) -> None:
    kinds = {"weight": weights, "dev": dev, "test": test}
    names = [f"{kind}-{seed}" for kind, c in kinds.items() for seed in c]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["objective", *names])
        for name in OBJECTIVES:
            values = [column[name] for columns in kinds.values() for column in columns.values()]
            table.writerow([name, *(f"{value:.4f}" for value in values)])


def _draw(weights: Columns, dev: Columns, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7, 4.5))
    x, y = mean(dev), mean(weights)
    for colour, output in (("C0", "denoise"), ("C1", "end-task")):
        names = [name for name in OBJECTIVES if name.endswith(output)]
        axes.scatter([x[n] for n in names], [y[n] for n in names], color=colour, label=output)
        for name in names:
            ends = [column[name] for column in weights.values()]
            axes.plot([x[name]] * 2, [min(ends), max(ends)], color=colour, alpha=0.4)
    axes.set_yscale("log")
    axes.set_xlabel("dev of the objective alone, percent")
    axes.set_ylabel("learned weight, percent")
    axes.legend(title="output")
    drawing.tight_layout()
    drawing.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
