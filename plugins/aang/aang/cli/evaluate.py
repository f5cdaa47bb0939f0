"""``aang evaluate``: the scores of a classifier on labelled data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang_core.cli.output import echo, note, print_table
from aang_core.plugins import Plugins
from aang_core.training.evaluation import shown_score

if TYPE_CHECKING:
    from aang.runs.schema import PartEvaluation


@click.command(short_help="Evaluate a trained classifier.")
@click.argument("model", metavar="RUN|MODEL", type=click.Path(path_type=Path))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="labelled file, in any format that training reads",
)
@click.option("--text", help="column of the text; default: the run's")
@click.option("--text-pair", help="column of the second text; default: the run's")
@click.option("--label", help="column of the label; default: the run's")
@click.option(
    "--skip-bad-rows",
    is_flag=True,
    help="leave out rows that lack a text or a label; without this they are an error",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--device", default="auto", show_default=True, help="torch device")
@click.option(
    "--trust-remote-code",
    is_flag=True,
    help="run the Python code that comes with the model, for models that have some",
)
@click.option("--json", "as_json", is_flag=True, help="print the scores as JSON")
@click.pass_obj
def evaluate(
    plugins: Plugins,
    /,
    model: Path,
    data: Path,
    text: str | None,
    text_pair: str | None,
    label: str | None,
    skip_bad_rows: bool,
    batch_size: int,
    device: str,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Print the scores of a classifier on labelled data, over all examples and by class.

    RUN is a run folder, MODEL any folder with a transformers classifier or its name on the hub.
    """
    from aang.corpora.labelled import read_rows
    from aang.runs.devices import on_usable_cores
    from aang.runs.evaluate import evaluate_rows
    from aang.runs.predict import Predictor
    from aang.runs.prediction_files import columns_to_read
    from aang.runs.run import Run
    from aang.runs.training import choose_device
    from aang_core.objectives.stages import ReadReport

    if (model / "config.yaml").is_file():
        for difference in Run.open(model).differences(plugins):
            note(difference)
    click.get_current_context().with_resource(on_usable_cores())
    predictor = Predictor.load(
        model,
        choose_device(device),
        trust_remote_code=trust_remote_code,
        registry=plugins.registry,
    )
    columns = columns_to_read(predictor, model, text, text_pair, label)
    report = ReadReport()
    rows = read_rows(data, columns, report, predictor.task_type, skip_bad_rows=skip_bad_rows)
    found = evaluate_rows(predictor, rows, report, batch_size=batch_size)
    for line in report.lines():
        note(line)
    if as_json:
        document = found.document()
        echo(json.dumps({"model": str(model), "data": str(data), **document}))
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
