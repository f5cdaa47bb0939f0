"""Sampling from a stream of texts in one pass, with only the sample in memory."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise

import torch
from aang.corpora import is_unspaced, letter_runs
from sklearn.feature_extraction.text import (
    ENGLISH_STOP_WORDS,
    HashingVectorizer,
    TfidfTransformer,
)

from aang_core import DataError

_AT_ONCE = 1024
"""Number of texts that one product of sparse matrices compares with the task."""


def sample(name: str, texts: Iterable[str], n: int, task: Sequence[str], seed: int) -> list[str]:
    """Draw ``n`` texts from a stream; fewer if it has fewer.

    ``first`` reads no further than it needs to. From a corpus of papers it takes consecutive
    paragraphs of the first papers, whatever they are about. The files that TARTAN's authors
    published with their code were made in this way: the one for SciERC begins with all of the one
    for ACL-ARC.

    Args:
        name: ``nearest``, ``random`` or ``first``.
        texts: the stream.
        n: how many texts to draw.
        task: the task's texts, which ``nearest`` compares others with.
        seed: of a random sample.
    """
    if name == "nearest":
        return nearest(texts, n, task)
    if name == "random":
        return uniform(texts, n, torch.Generator().manual_seed(seed))
    return list(islice(texts, n))


def uniform(texts: Iterable[str], n: int, generator: torch.Generator) -> list[str]:
    """Draw ``n`` texts uniformly and keep the order of the stream.

    Reservoir sampling (Vitter, 1985, algorithm R): a draw for every text after the first ``n``.
    """
    kept: list[tuple[int, str]] = []
    for i, text in enumerate(texts):
        if i < n:
            kept.append((i, text))
            continue
        place = int(torch.randint(i + 1, (), generator=generator))
        if place < n:
            kept[place] = (i, text)
    return [text for _, text in sorted(kept)]


def nearest(texts: Iterable[str], n: int, task: Sequence[str]) -> list[str]:
    """Take the ``n`` texts nearest to a task's; the nearest first.

    Nearness is the cosine between the TF-IDF vector of a text and the mean vector of ``task``.
    Document frequencies come from ``task``, so one pass is enough; a word that is not in the task
    counts like its rarest words. In scripts without spaces between words, such as Chinese, two
    characters in a row count as a word. If two texts are equally near, the earlier one is taken.

    Raises:
        DataError: the task's texts have no words to compare.
    """
    words = HashingVectorizer(alternate_sign=False, norm=None, analyzer=_words)
    tfidf = TfidfTransformer(sublinear_tf=True)
    direction = tfidf.fit_transform(words.transform(task)).mean(axis=0).A1
    length = float((direction**2).sum()) ** 0.5
    if not length:
        raise DataError(
            "the task's texts have only frequent words such as 'the', and single characters: "
            "nothing is nearest to them. Draw texts with --sample random, or name another column "
            "with --text."
        )

    def scored() -> Iterator[tuple[float, int, str]]:
        # The running index keeps texts themselves from being compared.
        places = itertools.count()
        stream = iter(texts)
        while some := list(islice(stream, _AT_ONCE)):
            scores = tfidf.transform(words.transform(some)) @ direction / length
            yield from zip(scores.tolist(), (-next(places) for _ in some), some, strict=True)

    return [text for _, _, text in heapq.nlargest(n, scored())]


def _words(text: str) -> list[str]:
    """The words to compare: scikit-learn's, with combining marks, in scripts with spaces."""
    runs = letter_runs(text.lower())
    if all(map(str.isascii, runs)):
        return _compared(runs)
    words: list[str] = []
    for unspaced, some in groupby(runs, lambda run: is_unspaced(run[0])):
        together = list(some)
        if not unspaced:
            words += _compared(together)
        elif len(together) > 1:
            words += map("".join, pairwise(together))
        else:
            words += together
    return words


def _compared(words: Sequence[str]) -> list[str]:
    return [word for word in words if len(word) > 1 and word not in ENGLISH_STOP_WORDS]
