"""The task ``word-order``: is a sentence as it was written, or are the words inside it shuffled?

The sentences are from the documentation of the demo's eight packages, which the shipped encoder was
not pre-trained on. A bag of words is the same in any order, so TF-IDF, which is ahead on the
demo, sees little here. The first and the last word stay in place: a capital letter or a full stop
in the middle would give the shuffled ones away.
"""

import re
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from aang.corpora import LabelledTask, TaskWithTexts

from aang_core.objectives.stages.data import Example, ReadReport
from aang_plugin_demo.documentation import (
    MIN_PARAGRAPHS,
    PACKAGES,
    DemoTaskUnavailable,
    rank,
    read_library,
    split,
)

INTACT, SHUFFLED = "intact", "shuffled"

MIN_WORDS = 7
"""In a shorter sentence there is little to shuffle."""

_LENGTHS = range(40, 301)  # characters
_LETTERS = 0.8  # share of letters and spaces; below it a sentence is an example or a table
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def word_order(report: ReadReport, stdlib: Path | None = None) -> TaskWithTexts:
    """Read the task: 200 sentences in train, 200 in dev, and some 2,900 in test.

    Which half of the sentences is shuffled, and how, follows from hashes of the sentences, so that
    the same Python release gives the same task on every machine.

    Args:
        report: not used.
        stdlib: folder of a standard library; by default that of the running interpreter.

    Raises:
        DemoTaskUnavailable: the interpreter's standard library has too little documented source.
    """
    root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib
    paragraphs = read_library(root)
    found = {s for name in PACKAGES for text in paragraphs[name] for s in sentences(text)}
    labelled: dict[str, list[Example]] = defaultdict(list)
    for sentence in sorted(found, key=rank):
        mixed = shuffled(sentence)
        if mixed == sentence:
            continue
        if int(rank(sentence), 16) % 2:
            labelled[SHUFFLED].append(Example(mixed, label=SHUFFLED))
        else:
            labelled[INTACT].append(Example(sentence, label=INTACT))
    if any(len(labelled[label]) < MIN_PARAGRAPHS for label in (INTACT, SHUFFLED)):
        raise DemoTaskUnavailable(
            f"the task word-order needs the sources of {', '.join(PACKAGES)}; {root} has too few "
            "of them. Use a Python that comes with its sources (python.org, a Linux "
            "distribution's, conda), or name data of your own."
        )
    train, dev, test = split(labelled)
    return TaskWithTexts(LabelledTask("word-order", train, dev, test, (INTACT, SHUFFLED)))


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph that are prose, and neither short nor long."""
    for sentence in _SENTENCE_ENDS.split(paragraph):
        letters = sum(character.isalpha() or character == " " for character in sentence)
        long_enough = len(sentence) in _LENGTHS and len(sentence.split()) >= MIN_WORDS
        if long_enough and letters >= _LETTERS * len(sentence):
            yield sentence


def shuffled(sentence: str) -> str:
    """The sentence with the words between the first and the last one in an order by hashes."""
    first, *inside, last = sentence.split()
    order = sorted(range(len(inside)), key=lambda place: rank(f"{place} {sentence}"))
    return " ".join([first, *(inside[place] for place in order), last])
