"""A task of long texts: which kind of section of a paper a text is.

    python -m benchmarks.long_texts CS_PAPERS OUT

CS_PAPERS is a folder in S2ORC's layout of 2020, ``metadata`` beside ``pdf_parses``. A text is the
first 500 words of a section with at least 400, its paragraphs joined; its class is what the
section's title says. OUT gets ``train.jsonl``, ``dev.jsonl`` and ``test.jsonl``, with no paper in
two of them. ``long-texts.yaml`` beside this file trains on them at 128, 256 and 512 tokens.
"""

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.comparison_files import FOLDER

KINDS = {
    "introduction": "introduction",
    "related work": r"related work|previous work|prior work|background",
    "method": r"method|approach|model|algorithm",
    "experiments": r"experiment|evaluation|results",
}
"""Patterns for a title, in lower case. A title that matches two kinds is left out."""

WORDS, FEWEST_WORDS = 500, 400
SHARES = {"test": 0.3, "dev": 0.1}
"""Shares of the papers; train has the others."""


def sections(parses: Path) -> Iterator[list[dict[str, str]]]:
    """The labelled sections of each paper."""
    for file in sorted(parses.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                texts: dict[str, list[str]] = {}
                for paragraph in json.loads(line)["body_text"]:
                    texts.setdefault(paragraph["section"], []).append(paragraph["text"])
                found = []
                for title, paragraphs in texts.items():
                    kinds = [k for k, of in KINDS.items() if re.search(of, title.lower())]
                    words = " ".join(paragraphs).split()
                    if len(kinds) == 1 and len(words) >= FEWEST_WORDS:
                        found.append({"text": " ".join(words[:WORDS]), "label": kinds[0]})
                yield found


@click.command(help=__doc__)
@click.argument("papers", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
def main(papers: Path, out: Path) -> None:
    """Write the three files."""
    drawn = list(sections(papers / "pdf_parses"))
    random.Random(0).shuffle(drawn)
    out.mkdir(parents=True, exist_ok=True)
    begin = 0
    for part in ("test", "dev", "train"):
        end = begin + round(SHARES[part] * len(drawn)) if part in SHARES else len(drawn)
        rows = [row for paper in drawn[begin:end] for row in paper]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (out / f"{part}.jsonl").write_text(text, encoding="utf-8")
        click.echo(f"{part}: {len(rows)} texts, {dict(Counter(row['label'] for row in rows))}")
        begin = end


if __name__ == "__main__":
    main()
