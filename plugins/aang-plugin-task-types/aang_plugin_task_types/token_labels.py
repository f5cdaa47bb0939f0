"""A tag for every word of a text, such as the names of persons and places in it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from aang.task_types import (
    NO_LABEL,
    Cell,
    Decoded,
    EncodedLabels,
    Errors,
    Label,
    LabelColumn,
    Metric,
    Offsets,
    SingleLabel,
    is_unspaced,
    list_of,
    listed,
    word_places,
)
from torch import Tensor
from torch.nn import functional

from aang_core import ReadReport, RowLosses, TaggedWord
from aang_plugin_task_types.tagged_words import OUTSIDE, tokens_in, words_of_lists, words_of_spans

_PREFIXED = re.compile(r"[BIESLU]-.+")
"""A tag with a prefix that makes it part of a span."""


@dataclass(frozen=True)
class TokenLabels(SingleLabel):
    """Every word has a tag; the loss is cross-entropy at the first token of each word.

    ``labels`` are the tags, sorted. Tags such as parts of speech are scored as classes of words;
    :class:`SpanLabels` scores those that mark spans.

    Attributes:
        spaced: whether words are separated by spaces, as when train has lists of tokens.
    """

    spaced: bool = field(default=False, kw_only=True)

    name: ClassVar[str] = "token-labels"
    model: ClassVar[str] = "A model that tags the words of texts"
    baseline: ClassVar[str] = "most frequent tag"
    label_form: ClassVar[str] = "a tuple of TaggedWord"
    draws: ClassVar[str] = "at random"
    reads_every_token: ClassVar[bool] = True
    several_classes: ClassVar[bool] = True
    # Its head reads every token, so the first one need not see the whole row.
    waives: ClassVar[frozenset[str]] = frozenset({"sentence-representation"})
    pipeline_options: ClassVar[str] = 'aggregation_strategy="first"'
    linear: ClassVar[str | None] = None

    @classmethod
    def recognises(cls, column: LabelColumn, report: ReadReport) -> str | None:
        beside = zip(map(list_of, column.labels), column.texts, strict=True)
        lists = [(label, text) for label, text in beside if label is not None]
        if lists and all(tokens_in(text) is not None for _, text in lists):
            return "a list of tags for a list of tokens"
        of_spans = any(isinstance(part, dict | list) for label, _ in lists for part in label)
        return "lists of spans" if of_spans else None

    @classmethod
    def of_column(
        cls, column: LabelColumn, names: Sequence[str], report: ReadReport
    ) -> "TokenLabels":
        parts = (part for label in column.labels for part in list_of(label) or ())
        of_spans = any(isinstance(part, dict | list) for part in parts)
        return replace(super().of_column(column, names, report), spaced=not of_spans)

    @classmethod
    def of_model(cls, config: Any, labels: tuple[str, ...]) -> "TokenLabels | None":
        if "ForTokenClassification" not in " ".join(config.architectures or ()):
            return None
        return tag_labels(labels, spaced=bool(getattr(config, "words_at_spaces", False)))

    def finish(self, model: Any) -> None:
        """Also record what a word of a text is, beside what transformers reads."""
        model.config.words_at_spaces = self.spaced

    def holds(self, label: object) -> bool:
        return isinstance(label, tuple) and all(isinstance(word, TaggedWord) for word in label)

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        label = label.with_list()
        tokens = tokens_in(text.value)
        if isinstance(text.value, str) and isinstance(label.value, list):
            of_spans = all(isinstance(part, dict | list) for part in label.value)
            if of_spans and (label.value or tokens is None):
                return words_of_spans(text, label, report)
        return words_of_lists(text if tokens is None else text.inner(tokens), label, report)

    def fitted(
        self, labels: Sequence[Label], source: str, option: str, report: ReadReport
    ) -> "TokenLabels":
        tags = super().fitted(labels, source, option, report).labels
        marks = [tag for tag in tags if _PREFIXED.fullmatch(tag)]
        if marks and (others := sorted({*tags} - {*marks, OUTSIDE})):
            report.note(
                f"{source}: {listed(others)} has no prefix, as {marks[0]} has, so words are scored "
                "one by one; spans are where all tags have one"
            )
        return tag_labels(tags, spaced=self.spaced)

    def names(self, label: Label) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word.tag for word in _words(label)))

    def strata(self, labels: Sequence[Label]) -> list[str]:
        return [""] * len(labels)

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        found: list[int] = []
        for label, places in zip(labels, offsets(), strict=True):
            if not isinstance(label, tuple):
                self.ids([label], source)  # raises
            row, words = [NO_LABEL] * len(places), _words(label)
            pairs = list(_first_tokens([(word.start, word.end) for word in words], places))
            ids = self.ids((words[word].tag for _, word in pairs), source)
            for (token, _), tag in zip(pairs, ids, strict=True):
                row[token] = tag
            found += row
        return EncodedLabels(tokens=torch.tensor(found, dtype=torch.int64))

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        labels = labels.where(labels < logits.shape[-1], NO_LABEL)
        losses = functional.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=NO_LABEL, reduction="none"
        )
        return RowLosses(losses.sum(dim=1), (labels != NO_LABEL).sum(dim=1))

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        known = labels != NO_LABEL
        return super().scores(labels[known], logits[known])

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        """Resamples of texts; the words of a text go together."""
        known = labels != NO_LABEL
        of_text = known.nonzero()[:, 0]
        return super().resampled(labels[known], logits[known], counts[:, of_text])

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        known = labels != NO_LABEL
        return super().errors(labels[known], logits[known])

    def counts(self, labels: Tensor) -> dict[str, int]:
        return super().counts(labels[labels != NO_LABEL])

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        most = train[train != NO_LABEL].bincount(minlength=len(self.labels)).argmax()
        logits = functional.one_hot(most, len(self.labels)).float()
        return self.scores(labels, logits.expand(*labels.shape, -1))

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        found = logits.argmax(dim=-1).cpu().tolist()
        return [self._decoded(*row) for row in zip(found, texts, offsets, strict=True)]

    def _decoded(
        self, found: Sequence[int], text: str, places: Sequence[tuple[int, int]]
    ) -> Decoded:
        tagged = [
            (start, end, self.labels[found[token]])
            for token, start, end in _words_of_tokens(
                text, places, _between_spaces(text) if self.spaced else word_places(text)
            )
        ]
        return Decoded(
            [
                {"start": start, "end": end, "label": name, "text": text[start:end]}
                for start, end, name in self._named(tagged)
            ]
        )

    def _named(self, tagged: Sequence[tuple[int, int, str]]) -> Sequence[tuple[int, int, str]]:
        """What predictions say about words with their tags, each with its start and end."""
        return tagged


@dataclass(frozen=True)
class SpanLabels(TokenLabels):
    """Tags with prefixes such as ``B-`` and ``I-``, which mark spans; seqeval scores the spans."""

    metrics: ClassVar[tuple[Metric, ...]] = ("entity-f1", "accuracy")

    @property
    def classes(self) -> tuple[str, ...]:
        """The types of spans."""
        return tuple(sorted({tag.partition("-")[2] for tag in super().classes if "-" in tag}))

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        from seqeval.metrics import f1_score

        truth, predicted = self._rows(labels, labels), self._rows(labels, logits.argmax(dim=-1))
        f1 = float(f1_score(truth, predicted, zero_division=0))
        return {"entity-f1": f1, "accuracy": super().scores(labels, logits)["accuracy"]}

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        of_words = super().resampled(labels, logits, counts)
        truth, predicted = (
            [set(_spans(row)) for row in self._rows(labels, tags)]
            for tags in (labels, logits.argmax(dim=-1))
        )
        sizes = [
            (len(there & given), len(given) + len(there))
            for there, given in zip(truth, predicted, strict=True)
        ]
        right, both = (counts @ torch.tensor(sizes, dtype=counts.dtype)).unbind(dim=1)
        return {"entity-f1": 2 * right / both.clamp(min=1), "accuracy": of_words["accuracy"]}

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        from seqeval.metrics import classification_report

        rows = self._rows(labels, labels), self._rows(labels, logits.argmax(dim=-1))
        # Without any span, seqeval's averages over no types would be numpy's warnings.
        some = any(_spans(tags) for part in rows for tags in part)
        table = classification_report(*rows, output_dict=True, zero_division=0) if some else {}
        empty = {"precision": 0.0, "recall": 0.0, "f1-score": 0.0, "support": 0}
        found = {name: table.get(name, empty) for name in self.classes}
        return Errors(
            {
                name: {
                    "precision": float(row["precision"]),
                    "recall": float(row["recall"]),
                    "f1": float(row["f1-score"]),
                    "examples": int(row["support"]),
                }
                for name, row in found.items()
            }
        )

    def counts(self, labels: Tensor) -> dict[str, int]:
        """Spans of each type."""
        rows = self._rows(labels, labels)
        counted = Counter(name for row in rows for name, _, _ in _spans(row))
        return {name: counted[name] for name in self.classes}

    def _named(self, tagged: Sequence[tuple[int, int, str]]) -> Sequence[tuple[int, int, str]]:
        spans = _spans([_iobes(tag) for _, _, tag in tagged])
        return [(tagged[first][0], tagged[last][1], name) for name, first, last in spans]

    def _rows(self, labels: Tensor, found: Tensor) -> list[list[str]]:
        """The tags of each row's words, as seqeval knows them."""
        tags = list(map(_iobes, self.labels + self.unseen))
        return [
            [tags[i] for i in row[known].tolist()]
            for row, known in zip(found, labels != NO_LABEL, strict=True)
        ]


def tag_labels(tags: tuple[str, ...], *, spaced: bool = False) -> TokenLabels:
    """The kind for these tags; they mark spans if each is ``O`` or has a prefix such as ``B-``."""
    marks = [tag for tag in tags if tag != OUTSIDE]
    kind = SpanLabels if marks and all(map(_PREFIXED.fullmatch, marks)) else TokenLabels
    return kind(tags, spaced=spaced)


def _words(label: Label | None) -> list[TaggedWord]:
    parts = label if isinstance(label, tuple) else ()
    return [word for word in parts if isinstance(word, TaggedWord)]


def _first_tokens(
    words: Sequence[tuple[int, int]], places: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The first token of each word, as pairs of token and word; words without one are left out.

    A token may begin with the space before its word, so what counts is whether they overlap.
    """
    word = 0
    for token, (start, end) in enumerate(places):
        while word < len(words) and words[word][1] <= start:
            word += 1
        if word == len(words):
            return
        if end > max(start, words[word][0]):
            yield token, word
            word += 1


def _between_spaces(text: str) -> list[tuple[int, int]]:
    """The tokens of a list, between which :func:`.words_of_lists` puts spaces."""
    return [match.span() for match in re.finditer(r"[^ \t\n\r]+", text)]


def _words_of_tokens(
    text: str, places: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """The first token of each of a text's words, with the word's start and end.

    In scripts without spaces a character is a word, and a token may cover several: what it covers
    is one word here.
    """
    pairs = list(_first_tokens(words, places))
    following = [word for _, word in pairs[1:]] + [len(words)]
    for (token, word), limit in zip(pairs, following, strict=True):
        last = word
        while last + 1 < limit and _covers(places[token], text, words[last + 1][0]):
            last += 1
        yield token, words[word][0], words[last][1]


def _covers(place: tuple[int, int], text: str, start: int) -> bool:
    return start < place[1] and is_unspaced(text[start])


def _spans(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, first word and last word of each span, from tags as seqeval knows them."""
    from seqeval.metrics.sequence_labeling import get_entities

    found: list[tuple[str, int, int]] = get_entities(list(tags))
    return found


def _iobes(tag: str) -> str:
    """The tag with S- and E- for BILOU's U- and L-, which seqeval takes for parts of any span.

    A tag in dev or test without a prefix is not part of a span.
    """
    if not _PREFIXED.fullmatch(tag):
        return OUTSIDE
    return {"U-": "S-", "L-": "E-"}.get(tag[:2], tag[:2]) + tag[2:]
