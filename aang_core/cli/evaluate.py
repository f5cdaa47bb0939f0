"""``aang evaluate``: the scores of a run's model on other data."""

import json
from pathlib import Path

import click

from aang_core.cli.output import echo, note
from aang_core.cli.tables import print_table
from aang_core.plugins import Plugins


@click.command(short_help="Evaluate a trained classifier.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="labelled file with the columns that the run was trained with",
)
@click.option(
    "--trust-remote-code",
    is_flag=True,
    help="run the Python code that comes with the model, for models that have some",
)
@click.option("--json", "as_json", is_flag=True, help="print the scores as JSON")
@click.pass_obj
def evaluate(
    plugins: Plugins, /, run: Path, data: Path, trust_remote_code: bool, as_json: bool
) -> None:
    """Score the model of the run folder RUN on labelled data."""
    from aang_core.corpora.labelled import read_rows
    from aang_core.objectives.stages import ReadReport
    from aang_core.runs.evaluating import evaluate_rows
    from aang_core.runs.predictor import Predictor
    from aang_core.runs.run import Run
    from aang_core.runs.training import choose_device

    opened = Run.open(run)
    for difference in opened.differences(plugins):
        note(difference)
    report = ReadReport()
    predictor = Predictor.load(run, choose_device("cpu"), trust_remote_code=trust_remote_code)
    scores = evaluate_rows(
        predictor, read_rows(data, predictor.columns, report, predictor.task_type), report
    ).scores
    for line in report.lines():
        note(line)
    if as_json:
        echo(json.dumps({"run": str(run), "data": str(data), "scores": dict(scores)}))
    else:
        print_table(["metric", str(data)], [[name, f"{s:.4f}"] for name, s in scores.items()])
