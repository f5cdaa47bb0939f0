"""``aang evaluate``: the scores of a classifier on labelled data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang.cli.saved_model import ClassifierOptions, model_argument
from aang.cli.schema_options import given_options, options_of
from aang.config import Positive, validated
from aang.task_types.metrics import shown_score
from aang_core.cli.output import echo, note, print_table
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang.runs.schema import PartEvaluation


class _Options(ClassifierOptions):
    label: str | None = None
    """column of the label; default: the run's"""
    skip_bad_rows: bool = False
    """leave out rows that lack a text or a label; without this they are an error"""
    batch_size: Positive = 64
    """texts that are computed together"""


@click.command(short_help="Evaluate a trained classifier.")
@model_argument
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="labelled file, in any format that training reads",
)
@options_of(_Options)
@click.option("--json", "as_json", is_flag=True, help="print the scores as JSON")
@click.pass_obj
def evaluate(plugins: Plugins, /, model: Path, data: Path, as_json: bool, **given: Any) -> None:
    """Print the scores of a classifier on labelled data, over all examples and by class.

    RUN is a run folder, MODEL any folder with a transformers classifier or its name on the hub.
    """
    options = validated(_Options, given_options(given), "aang evaluate")

    from aang.runs.evaluate import applied_scores
    from aang.runs.run import Run

    if (model / "config.yaml").is_file():
        for difference in Run.open(model).differences(plugins):
            note(difference)
    predictor = options.load(model, plugins)
    columns = replace(predictor.columns, label=options.label or predictor.columns.label)
    applied = applied_scores(
        replace(predictor, columns=columns),
        data,
        batch_size=options.batch_size,
        skip_bad_rows=options.skip_bad_rows,
    )
    found = applied.evaluation
    for line in applied.notes:
        note(line)
    if as_json:
        echo(json.dumps({"model": str(model), "data": str(data), **found.document()}))
    else:
        _print_scores(found, str(data))


def _print_scores(found: "PartEvaluation", data: str) -> None:
    scores = [[name, found.shown(name)] for name in found.scores]
    print_table(["metric, 95% interval", data], scores)
    if not found.classes:
        return
    echo()
    rows: list[list[Any]] = [
        [label, *(shown_score(s, "") for s in (c.precision, c.recall, c.f1)), str(c.examples)]
        for label, c in found.classes.items()
    ]
    print_table(["class", "precision", "recall", "f1", "examples"], rows)
