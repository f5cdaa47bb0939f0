"""``aang prepare-domain``: in-domain text for a task, drawn from what a data primitive reads."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from aang.cli import parse_settings
from aang.corpora import read_table, well_formed

from aang_core import ConfigError, DataError, Example, Plugins, ReadReport, did_you_mean
from aang_core.cli import note, print_table
from aang_core.storage import whole_file, writing
from aang_plugin_s2orc.marks import SEEN, Marks

FILE = click.Path(path_type=Path, dir_okay=False)

COLUMN = "text"

PROVENANCE = b"aang"
"""Key of the Parquet file's metadata that holds the origin of its texts, as JSON."""

COUNTS = {
    "read": "read",
    "duplicates": "that came before",
    "overlapping": "overlapping with dev or test",
    "candidates": "drawn from",
    "written": "written",
}
"""What is counted among the texts of the source, and how the command says it."""


@click.command(short_help="Draw in-domain text for a task from a corpus.")
@click.argument(
    "corpus", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--near", "task", required=True, type=FILE, help="the task's training file")
@click.option("--dev", type=FILE, help="the task's dev file; what overlaps is left out")
@click.option("--test", type=FILE, help="the task's test file; what overlaps is left out")
@click.option(
    "--text", "columns", multiple=True, default=("text",), show_default=True, help="column"
)
@click.option(
    "--source", default="s2orc", show_default=True, help="data primitive that reads FILES"
)
@click.option("--field", help="field of study, if the source supports it")
@click.option("--years", help="years of papers, such as 2015, 2010-2020 or 2015-, if supported")
@click.option("--language", help="of abstracts, an ISO 639 code such as en, if supported")
@click.option(
    "--times", default=10.0, show_default=True, help="texts to draw for each text of the task"
)
@click.option(
    "--sample",
    type=click.Choice(["nearest", "random", "first"]),
    default="nearest",
    show_default=True,
    help="which texts to draw: the nearest to the task's text by TF-IDF, random ones, or the first "
    "ones, consecutive paragraphs of arbitrary papers like TARTAN's files",
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME.OPTION=VALUE", help="option of the source"
)
@click.option(
    *("--seed", "seed"),
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="of a random sample",
)
@click.option("--out", required=True, type=FILE, help="the Parquet file to write")
@click.pass_obj
def prepare_domain(
    plugins: Plugins,
    /,
    corpus: tuple[Path, ...],
    task: Path,
    dev: Path | None,
    test: Path | None,
    columns: tuple[str, ...],
    source: str,
    times: float,
    sample: str,
    settings: tuple[str, ...],
    seed: int,
    out: Path,
    **filters: str | None,
) -> None:
    """Draw in-domain text for a task from FILES, without text that it is evaluated on.

    A text that shares eight words in a row with the dev or test set is left out; in Chinese,
    Japanese, Thai and other scripts without spaces between words, eight characters. Pass the file
    that this writes to training with --domain.
    """
    from aang.assembly import CheckedData

    from aang_core import DataContext
    from aang_plugin_s2orc.domain.overlap import Overlap
    from aang_plugin_s2orc.domain.sampling import sample as draw

    if not 0 < times < math.inf:
        raise ConfigError(f"--times {times}: give a number above 0")
    if out.suffix != ".parquet":
        raise ConfigError(f"--out {out}: is a Parquet file; let its name end in .parquet")
    # Check now, not after the corpus has been read.
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}; make it first")
    report = ReadReport()
    texts = _texts_of(task, columns, report)
    evaluated = [path for path in (dev, test) if path is not None]
    if not evaluated:
        note("neither --dev nor --test is given, so no overlap is removed")
    overlap = Overlap(text for path in evaluated for text in _texts_of(path, columns, report))
    wanted = max(1, round(times * len(texts)))
    primitive = plugins.registry.primitive("data", source)
    options = _options_of(primitive.key, parse_settings(settings)) | {
        name: value for name, value in filters.items() if value is not None
    }
    data = CheckedData(primitive.make(**options), primitive)
    context = DataContext(train=(), domain=corpus, out_of_domain=corpus, seed=seed, report=report)
    counts = dict.fromkeys(COUNTS, 0)
    candidates = _usable(data.examples(context), overlap, counts, report)
    drawn = draw(sample, candidates, wanted, texts, seed)
    counts["written"] = len(drawn)
    if not drawn:
        raise DataError(
            f"no text is left to draw from: of {counts['read']} texts {counts['duplicates']} came "
            f"twice and {counts['overlapping']} overlap with the dev or test set"
        )
    provenance = {
        "source": source,
        "options": options,
        "files": [str(path) for path in corpus],
        "task": str(task),
        "held_out": {"dev": str(dev or ""), "test": str(test or "")},
        "sample": sample,
        "seed": seed,
        "counts": counts,
    }
    _write(drawn, out, provenance)
    for line in report.lines():
        note(line)
    if len(drawn) < wanted:
        note(f"{wanted} texts were wanted, and there are no more")
    print_table(["texts", ""], [[said, str(counts[name])] for name, said in COUNTS.items()])


def _options_of(source: str, settings: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The options in ``settings`` that are the source's; no other primitive is used."""
    for name in settings:
        if name != source:
            hint = did_you_mean(name, [source], "it is")
            raise ConfigError(f"--set {name}.…: the source of the texts is not {name!r}; {hint}")
    return settings.get(source, {})


def _texts_of(path: Path, columns: Sequence[str], report: ReadReport) -> list[str]:
    """The texts of a task's file; a pair counts as two texts.

    Raises:
        DataError: the file cannot be read, or a column is missing.
    """
    table = read_table(path, columns)
    texts: list[str] = []
    for number, values in table.rows:
        for column in columns:
            if column not in values:
                raise DataError(
                    f"{table.where(number)}: there is no column {column!r}. Name the right one "
                    "with --text."
                )
            text = values[column]
            if isinstance(text, str) and text.strip():
                texts.append(text)
            else:
                report.add("row without a text, skipped", table.where(number))
    if not texts:
        raise DataError(f"{path}: there is no text in it.")
    return texts


def _usable(
    examples: Iterable[Example], overlap: Any, counts: dict[str, int], report: ReadReport
) -> Iterator[str]:
    """The texts that are new and do not overlap; 16 bytes per text stay in memory."""
    seen = Marks()
    for example in examples:
        counts["read"] += 1
        text = well_formed(example.text)
        if text != example.text:
            event = "text with half a surrogate pair, replaced by U+FFFD"
            report.add(event, f"text {counts['read']} of the source")
        if not seen.add(text, SEEN):
            counts["duplicates"] += 1
        elif overlap(text):
            counts["overlapping"] += 1
        else:
            counts["candidates"] += 1
            yield text


def _write(texts: Sequence[str], out: Path, provenance: Mapping[str, Any]) -> None:
    """Write the texts and their origin to a Parquet file, atomically."""
    import pyarrow
    from pyarrow import parquet

    said = json.dumps(provenance, default=str).encode()
    schema = pyarrow.schema([(COLUMN, pyarrow.string())], metadata={PROVENANCE: said})
    table = pyarrow.table({COLUMN: list(texts)}, schema=schema)
    with writing(out), whole_file(out, shared=True) as draft:
        parquet.write_table(table, draft)
