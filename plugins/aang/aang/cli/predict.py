"""``aang predict``: labels and probabilities of new texts."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from aang.cli.saved_model import ClassifierOptions, model_argument
from aang.cli.schema_options import given_options, options_of
from aang.config import validated
from aang.config.values import File
from aang_core.cli.output import note
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang_core.objectives.stages import ReadReport


class _Options(ClassifierOptions):
    data: File | None = None
    """file of texts, in any format that training reads; - for one text a line from standard input,
    or two with a tab between them"""
    out: File | None = None
    """file to write instead of standard output, complete or not at all"""
    format: Literal["jsonl", "csv"] | None = None
    """default: what the extension of --out says, else jsonl"""
    label_only: bool = False
    """print the label alone, one a line"""


@click.command(short_help="Predict the labels of texts.")
@model_argument
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option(
    "--pair", "pairs", metavar="TEXT TEXT", nargs=2, multiple=True, help="a pair of texts"
)
@options_of(_Options)
@click.option("--quiet", is_flag=True, help="no progress and no notes")
@click.pass_obj
def predict(
    plugins: Plugins,
    /,
    model: Path,
    texts: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    quiet: bool,
    **given: Any,
) -> None:
    """Print the label and the probabilities of each text as soon as they are computed.

    RUN is a run folder, MODEL any folder with a transformers classifier or its name on the hub. The
    predictions for a file have all of its columns, in its order, and take constant memory.
    """
    options = validated(_Options, given_options(given), "aang predict")

    from aang.cli.progress import counting
    from aang.corpora.columns import Columns
    from aang.runs import prediction_files as files
    from aang.runs.predict import WINDOW
    from aang_core.objectives.stages import ReadReport

    data, out = options.data, options.out
    if [bool(texts), bool(pairs), data is not None].count(True) != 1:
        raise ConfigError("give either texts, or pairs with --pair, or a file of texts with --data")
    if options.label_only and options.format is not None:
        raise ConfigError("--label-only prints lines of text; leave --format out")
    chosen = None if options.label_only else files.format_of(out, options.format)
    if out is not None:
        files.check_output(out)
    predictor = options.load(model, plugins)
    columns, report, window = predictor.columns, ReadReport(), 1
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
        sizes = {"batch_size": options.batch_size, "window": window}
        found = files.predicted(rows, predictor, **sizes, report=report)
        files.write_predictions(
            _counted(found, progress, report, data),
            out,
            chosen,
            predictor.labels,
            columns=header,
        )
    for line in () if quiet else report.lines():
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
        report.note(f"{source}: holds no text, so nothing was predicted")
