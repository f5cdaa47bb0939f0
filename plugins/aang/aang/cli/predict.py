"""``aang predict``: labels and probabilities of new texts."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang_core.cli.output import note
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang_core.objectives.stages import ReadReport


@click.command(short_help="Predict the labels of texts.")
@click.argument("model", metavar="RUN|MODEL", type=click.Path(path_type=Path))
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option(
    "--pair", "pairs", metavar="TEXT TEXT", nargs=2, multiple=True, help="a pair of texts"
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, allow_dash=True),
    help="file of texts, in any format that training reads; - for one text a line from standard "
    "input, or two with a tab between them",
)
@click.option("--text", help="column of the text; default: the run's")
@click.option("--text-pair", help="column of the second text; default: the run's")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="file to write instead of standard output, complete or not at all",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["jsonl", "csv"]),
    help="default: what the extension of --out says, else jsonl",
)
@click.option("--label-only", is_flag=True, help="print the label alone, one a line")
@click.option("--batch-size", type=click.IntRange(min=1), default=32, show_default=True)
@click.option("--device", default="auto", show_default=True, help="torch device")
@click.option(
    "--trust-remote-code",
    is_flag=True,
    help="run the Python code that comes with the model, for models that have some",
)
@click.option("--quiet", is_flag=True, help="no progress and no notes")
@click.pass_obj
def predict(
    plugins: Plugins,
    /,
    model: Path,
    texts: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    data: Path | None,
    text: str | None,
    text_pair: str | None,
    out: Path | None,
    kind: Any,
    label_only: bool,
    batch_size: int,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Print the label and the probabilities of each text as soon as they are computed.

    RUN is a run folder, MODEL any folder with a transformers classifier or its name on the hub. The
    predictions for a file have all of its columns, in its order, and take constant memory.
    """
    from aang.cli.progress import counting
    from aang.corpora.labelled import Columns
    from aang.runs import prediction_files as files
    from aang.runs.devices import on_usable_cores
    from aang.runs.predict import WINDOW, Predictor
    from aang.runs.training import choose_device
    from aang_core.objectives.stages import ReadReport

    if [bool(texts), bool(pairs), data is not None].count(True) != 1:
        raise ConfigError("give either texts, or pairs with --pair, or a file of texts with --data")
    if label_only and kind is not None:
        raise ConfigError("--label-only prints lines of text; leave --format out")
    chosen = None if label_only else files.format_of(out, kind)
    if out is not None:
        files.check_output(out)
    click.get_current_context().with_resource(on_usable_cores())
    predictor = Predictor.load(
        model,
        choose_device(device),
        trust_remote_code=trust_remote_code,
        registry=plugins.registry,
    )
    columns = files.columns_to_read(predictor, model, text, text_pair)
    report, window = ReadReport(), 1
    header = Columns("text", columns.text_pair and "text_pair").texts()
    if data is None:
        files.check_pairs(predictor, model, pairs=bool(pairs))
        rows = files.rows_of_texts(pairs or ((single, None) for single in texts))
    elif str(data) == "-":
        rows = files.rows_of_lines(sys.stdin.buffer, pairs=columns.text_pair is not None)
    else:
        rows, window = files.rows_of_file(data, columns, report), WINDOW
        header = files.columns_of_file(data, columns)
    with counting("texts", quiet=quiet) as progress:
        found = files.predicted(rows, predictor, batch_size=batch_size, window=window)
        files.write_predictions(
            _counted(found, progress, report, data),
            out,
            chosen,
            predictor.labels,
            columns=header,
        )
    if not quiet:
        for line in report.lines():
            note(line)


def _counted(
    found: Iterator[Any], progress: Any, report: "ReadReport", data: Path | None
) -> Iterator[Any]:
    count = 0
    for count, prediction in enumerate(found, start=1):
        yield prediction
        progress(count, None)
    if not count:
        source = "standard input" if str(data) == "-" else data
        report.note(f"{source}: there is no text in it, and so no prediction")
