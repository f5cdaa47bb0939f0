"""``aang prepare-domain``: in-domain text for a task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click

from aang_core import ConfigError, Plugins, did_you_mean
from aang_core.cli import note, print_table

FILE = click.Path(path_type=Path, dir_okay=False)


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
@click.option("--seed", default=0, show_default=True, help="of a random sample")
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
    field: str | None,
    years: str | None,
    language: str | None,
    times: float,
    sample: Literal["nearest", "random", "first"],
    settings: tuple[str, ...],
    seed: int,
    out: Path,
) -> None:
    """Draw in-domain text for a task from FILES, without text that it is evaluated on.

    A text that shares eight words in a row with the dev or test set is left out; in Chinese,
    Japanese, Thai and other scripts without spaces between words, eight characters. Pass the file
    that this writes to training with --domain.
    """
    import torch
    from aang.assembly import CheckedData
    from aang.cli import parse_settings

    from aang_core import DataContext, ReadReport
    from aang_plugin_s2orc.domain.overlap import Overlap
    from aang_plugin_s2orc.domain.preparation import prepare, read_texts
    from aang_plugin_s2orc.domain.sampling import first, nearest, uniform

    if times <= 0:
        raise ConfigError(f"--times {times}: give a number above 0")
    if out.suffix != ".parquet":
        raise ConfigError(f"--out {out}: is a Parquet file; let its name end in .parquet")
    report = ReadReport()
    texts = read_texts(task, columns, report)
    held_out = {
        name: read_texts(path, columns, report)
        for name, path in (("dev", dev), ("test", test))
        if path is not None
    }
    if not held_out:
        note("neither --dev nor --test is given, so no overlap is removed")
    wanted = max(1, round(times * len(texts)))
    given = {"field": field, "years": years, "language": language}
    primitive = plugins.registry.primitive("data", source)
    options = _options_of(primitive.key, parse_settings(settings)) | {
        name: value for name, value in given.items() if value is not None
    }
    data = CheckedData(primitive.make(**options), primitive)
    context = DataContext(train=(), domain=corpus, out_of_domain=corpus, seed=seed, report=report)
    if sample == "nearest":
        sampler = nearest(wanted, texts)
    elif sample == "random":
        sampler = uniform(wanted, torch.Generator().manual_seed(seed))
    else:
        sampler = first(wanted)
    counts = prepare(
        data.examples(context),
        sampler,
        Overlap(text for some in held_out.values() for text in some),
        out,
        {
            "source": source,
            "options": options,
            "files": [str(path) for path in corpus],
            "task": str(task),
            "held_out": {"dev": str(dev or ""), "test": str(test or "")},
            "sample": sample,
            "seed": seed,
        },
        report,
    )
    for line in report.lines():
        note(line)
    if counts.written < wanted:
        note(f"{wanted} texts were wanted, and there are no more")
    print_table(
        ["texts", ""],
        [
            ["read", str(counts.read)],
            ["that came before", str(counts.duplicates)],
            ["overlapping with dev or test", str(counts.overlapping)],
            ["drawn from", str(counts.candidates)],
            ["written", str(counts.written)],
        ],
    )


def _options_of(source: str, settings: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The options in ``settings`` that are the source's; no other primitive is used."""
    for name in settings:
        if name != source:
            hint = did_you_mean(name, [source], "it is")
            raise ConfigError(f"--set {name}.…: the source of the texts is not {name!r}; {hint}")
    return settings.get(source, {})
