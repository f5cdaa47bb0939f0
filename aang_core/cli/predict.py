"""``aang predict``: labels and probabilities of new texts."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from aang_core.errors import ConfigError, DataError
from aang_core.printable import ACTING, printable


@click.command(short_help="Predict the labels of texts.")
@click.argument("model", metavar="RUN|MODEL", type=click.Path(path_type=Path))
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option(
    "--data",
    type=click.Path(path_type=Path, allow_dash=True),
    help="file of texts, in any format that training reads; - for one text a line from stdin",
)
@click.option("--text", help="column of the text; default: the run's")
@click.option("--text-pair", help="column of the second text; default: the run's")
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True
)
@click.option("--batch-size", type=click.IntRange(min=1), default=32, show_default=True)
@click.option("--device", default="auto", show_default=True, help="torch device")
@click.option(
    "--trust-remote-code",
    is_flag=True,
    help="run the Python code that comes with the model, for models that have some",
)
@click.option("--quiet", is_flag=True, help="no progress")
def predict(
    model: Path,
    texts: tuple[str, ...],
    data: Path | None,
    text: str | None,
    text_pair: str | None,
    kind: str,
    batch_size: int,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Print the label and the probabilities of each text as soon as they are computed.

    RUN is a run folder, MODEL any folder with a transformers classifier.
    """
    from aang_core.cli.progress import counting
    from aang_core.corpora.labelled import Columns
    from aang_core.corpora.text_files import well_formed
    from aang_core.runs.predictor import Predictor, read_texts
    from aang_core.runs.training import choose_device

    if bool(texts) == (data is not None):
        raise ConfigError("give either texts or a file of texts with --data")
    predictor = Predictor.load(model, choose_device(device), trust_remote_code=trust_remote_code)
    columns = Columns(
        text or predictor.columns.text, text_pair or predictor.columns.text_pair, label=""
    )
    if data is None:
        given: Iterator[Any] = iter((well_formed(t), None) for t in texts)
    elif str(data) == "-":
        given = ((line, None) for line in _lines(sys.stdin.buffer))
    else:
        given = read_texts(data, columns)
    write = _csv if kind == "csv" else _json_lines
    with counting("texts", quiet=quiet) as progress:
        found = predictor.predict(given, batch_size=batch_size)
        write(_counted(found, progress), sys.stdout, predictor.labels)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of standard input that are not blank, as they arrive.

    Raises:
        DataError: a line is not UTF-8.
    """
    for number, line in enumerate(stream, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"standard input:{number}: not UTF-8 text (byte {error.start} of the line). "
                "Convert it, for example with: iconv -f LATIN1 -t UTF-8"
            ) from error
        if text.strip():
            yield text


def _counted(found: Iterator[Any], progress: Any) -> Iterator[Any]:
    for count, prediction in enumerate(found, start=1):
        yield prediction
        progress(count, None)


def _json_lines(found: Iterator[Any], out: TextIO, labels: list[str]) -> None:
    for p in found:
        pair = {} if p.text_pair is None else {"text_pair": p.text_pair}
        record = {"text": p.text, **pair, "label": p.label, "probabilities": p.probabilities}
        out.write(_escaped(json.dumps(record, ensure_ascii=False)) + "\n")
        out.flush()


def _escaped(document: str) -> str:
    """JSON with escapes for characters that a terminal acts on; parsing it gives the same text.

    JSON always escapes control characters below U+0020.
    """
    return ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def _csv(found: Iterator[Any], out: TextIO, labels: list[str]) -> None:
    writer = csv.writer(out)
    writer.writerow(["text", "text_pair", "label", *map(printable, labels)])
    for p in found:
        cells = [printable(cell) for cell in (p.text, p.text_pair or "", p.label)]
        writer.writerow([*cells, *p.probabilities.values()])
        out.flush()
