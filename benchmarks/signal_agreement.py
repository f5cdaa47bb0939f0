"""Do signals rank objectives alike when they are measured twice, and as their scores alone do?

    python -m benchmarks.signal_quality --space td --weighter single-task --json > seed-0.jsonl
    python -m benchmarks.signal_agreement ALONE seed-0.jsonl seed-1.jsonl

ALONE is the folder of a comparison, or holds a copy of its ``table.json``, in which each objective
of td was trained alone, with the names of ``benchmarks.table_methods.OBJECTIVES``. Each file is one
measurement of the same task. Prints, for each way of measuring, Spearman's rank correlation over
the objectives: of two measurements, on average, and of each and of their mean with the dev scores.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from benchmarks.comparison_files import FOLDER
from benchmarks.learned_weights import Columns, agreement, alone, correlation, mean
from benchmarks.table_methods import OBJECTIVES

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def signals(files: Sequence[Path]) -> Mapping[str, Columns]:
    """The value of each objective by way of measuring, for each file.

    A way of measuring that has no value for some objective is left out.

    Raises:
        click.ClickException: a file does not have every objective.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for file in files:
        parsed = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        lines = [line for line in parsed if "value" in line]
        values = {(line["variant"], line["objective"]): line["value"] for line in lines}
        measured = {objective for _, objective in values}
        if missing := set(OBJECTIVES.values()) - measured:
            raise click.ClickException(f"{file}: {min(missing)} was not measured")
        for variant in dict.fromkeys(variant for variant, _ in values):
            column = {name: values[variant, full] for name, full in OBJECTIVES.items()}
            found.setdefault(variant, {})[str(file)] = column
    return {
        variant: columns
        for variant, columns in found.items()
        if not any(value is None for column in columns.values() for value in column.values())
    }


@click.command(help=__doc__)
@click.argument("alone_in", metavar="ALONE", type=FOLDER)
@click.argument("files", nargs=-1, required=True, type=_FILE)
def main(alone_in: Path, files: tuple[Path, ...]) -> None:
    """Print the table."""
    dev = mean(alone(alone_in, "dev"))
    click.echo("| measured as | two measurements | each and dev alone | their mean and dev alone |")
    click.echo("|---|---|---|---|")
    for variant, columns in signals(files).items():
        between = f"{agreement(columns):+.2f}" if len(columns) > 1 else "–"
        each = " ".join(f"{correlation(column, dev)[0]:+.2f}" for column in columns.values())
        rho, p = correlation(mean(columns), dev)
        click.echo(f"| `{variant}` | {between} | {each} | {rho:+.2f} (p = {p:.2f}) |")


if __name__ == "__main__":
    main()
