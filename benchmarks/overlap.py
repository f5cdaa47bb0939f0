"""How fast texts that overlap with held-out ones are found, and whether all are found.

    python -m benchmarks.overlap DOMAIN HELD_OUT.jsonl... --megabytes 1000

Texts of DOMAIN are read once and then checked over and over, each time with different numbers in
them, until ``--megabytes`` are reached. In a thousand of them, evenly spread, eight words of a
held-out text are planted in the middle.
"""

import itertools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import click
from aang_plugin_s2orc.domain.overlap import WORDS, Overlap, words_of
from aang_plugin_s2orc.source import S2orc

from aang_core.objectives.stages import DataContext

PLANTED = 1000


@click.command()
@click.argument("domain", type=click.Path(path_type=Path, exists=True))
@click.argument("held_out", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--megabytes", default=1000, show_default=True)
def main(domain: Path, held_out: tuple[Path, ...], megabytes: int) -> None:
    """Print megabytes per second, and how many planted overlaps were found."""
    held = [
        json.loads(line)["text"]
        for path in held_out
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    read = [e.text for e in S2orc().examples(DataContext([], domain=[domain]))]
    average = sum(len(text) for text in read) / len(read)
    between = max(1, int(megabytes * 1e6 / average / PLANTED))
    overlap = Overlap(held)
    planted = iter(_runs(held))
    found = met = size = 0
    taken = 0.0
    for number, text in enumerate(_texts(read)):
        if size >= megabytes * 1e6 and met >= PLANTED:
            break
        plants = met < PLANTED and number % between == between - 1
        looked_at = _with(next(planted), text) if plants else text
        size += len(looked_at)
        began = time.perf_counter()
        overlaps = overlap(looked_at)
        taken += time.perf_counter() - began
        met += plants
        found += plants and overlaps
    click.echo(
        f"{size / 1e6:.0f} MB in {taken:.0f} s, {size / 1e6 / taken:.1f} MB a second; "
        f"{len(held)} held-out texts; {found} of {met} planted overlaps found"
    )


def _texts(read: list[str]) -> Iterator[str]:
    for turn in itertools.count():
        for text in read:
            yield f"{turn} {text}"


def _with(planted: str, text: str) -> str:
    words = text.split()
    middle = len(words) // 2
    return " ".join([*words[:middle], planted, *words[middle:]])


def _runs(held: list[str]) -> Iterator[str]:
    """Eight words in a row of held-out texts, drawn with a fixed seed, in capitals."""
    draw = random.Random(0)
    long = [words for words in map(words_of, held) if len(words) >= WORDS]
    while True:
        words = draw.choice(long)
        start = draw.randrange(len(words) - WORDS + 1)
        yield " -- ".join(words[start : start + WORDS]).upper()


if __name__ == "__main__":
    main()
