"""A tag for every word of a text, such as the names of persons and places in it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from aang.task_types.cells import Cell
from aang.task_types.class_names import note_look_alikes, refuse_too_many, unknown_class
from aang.task_types.names import TaskTypeName
from aang.task_types.task_type import Decoded, EncodedLabels, Errors, HeadShape, Offsets
from aang.task_types.words import (
    OUTSIDE,
    are_entities,
    is_entity,
    is_unspaced,
    tokens_in,
    word_places,
    words_of_lists,
    words_of_spans,
)
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Label, ReadReport, TaggedWord
from aang_core.tasks.task import RowLosses
from aang_core.training.evaluation import Metric, confusion, per_class, resampled_scores, scores

NO_LABEL = -100
"""The label of a token that has none, which torch's cross-entropy leaves out."""


@dataclass(frozen=True)
class TokenLabels:
    """Every word has a tag; the loss is cross-entropy at the first token of each word.

    Tags with prefixes such as ``B-`` and ``I-`` mark spans, which are scored as wholes by seqeval.
    Other tags, such as parts of speech, are scored as classes of words.

    Attributes:
        labels: the tags, sorted.
        unseen: tags of dev and test that train lacks.
    """

    labels: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    name: ClassVar[TaskTypeName] = "token-labels"
    reads_every_token: ClassVar[bool] = True
    draws: ClassVar[str] = "at random"
    baseline: ClassVar[str] = "most frequent tag"
    probable: ClassVar[tuple[str, ...]] = ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        if are_entities(self.labels):
            return ("entity-f1", "accuracy")
        return ("macro-f1", "micro-f1", "accuracy")

    @property
    def classes(self) -> tuple[str, ...]:
        if not are_entities(self.labels):
            return self._tags
        return tuple(sorted({tag.partition("-")[2] for tag in self._tags if "-" in tag}))

    @property
    def _tags(self) -> tuple[str, ...]:
        """All tags, by id."""
        return self.labels + self.unseen

    @property
    def head(self) -> HeadShape:
        return HeadShape("token-classification", self.labels)

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        label = label.with_list()
        tokens = tokens_in(text.value) if isinstance(text.value, str) else None
        if isinstance(text.value, str) and isinstance(label.value, list):
            of_spans = all(isinstance(part, dict | list) for part in label.value)
            if of_spans and (label.value or tokens is None):
                return words_of_spans(text, label, report)
        return words_of_lists(text if tokens is None else text.inner(tokens), label, report)

    def fitted(
        self, labels: Sequence[Label], source: str, option: str, report: ReadReport
    ) -> "TokenLabels":
        found = {word.tag for label in labels for word in _words(label)}
        if len(found) < 2:
            what = f"every word has the tag {min(found)!r}" if found else "there is no word"
            raise DataError(
                f"{source}: {what}. Token labels need at least two tags; does {option} name the "
                "right column?"
            )
        tags = tuple(sorted(found))
        refuse_too_many(tags, len(labels), source, option)
        note_look_alikes(source, tags, report)
        return replace(self, labels=tags)

    def names(self, label: Label) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word.tag for word in _words(label)))

    def knowing(self, unseen: Sequence[str]) -> "TokenLabels":
        return replace(self, unseen=tuple(unseen))

    def strata(self, labels: Sequence[Label]) -> list[str]:
        return [""] * len(labels)

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        ids = {tag: i for i, tag in enumerate(self._tags)}
        found: list[int] = []
        for label, places in zip(labels, offsets(), strict=True):
            if not isinstance(label, tuple):
                raise unknown_class(label, self.labels, source)
            row = [NO_LABEL] * len(places)
            words = _words(label)
            for token, word in _first_tokens([(w.start, w.end) for w in words], places):
                if words[word].tag not in ids:
                    raise unknown_class(words[word].tag, self.labels, source)
                row[token] = ids[words[word].tag]
            found += row
        return EncodedLabels(tokens=torch.tensor(found, dtype=torch.int64))

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        labels = labels.where(labels < logits.shape[-1], NO_LABEL)
        losses = functional.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=NO_LABEL, reduction="none"
        )
        return RowLosses(losses.sum(dim=1), (labels != NO_LABEL).sum(dim=1))

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> "TokenLabels":
        return self

    def settings(self) -> Mapping[str, float]:
        return {}

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """F1 of spans and accuracy of words, or the scores of tags as classes of words."""
        return self._scores(labels, logits.argmax(dim=-1))

    def _scores(self, labels: Tensor, found: Tensor) -> Mapping[str, float]:
        known = labels != NO_LABEL
        of_words = scores(labels[known].tolist(), found[known].tolist())
        if not are_entities(self.labels):
            return of_words
        from seqeval.metrics import f1_score

        truth, predicted = self._entity_tags(labels, labels), self._entity_tags(labels, found)
        f1 = float(f1_score(truth, predicted, zero_division=0))
        return {"entity-f1": f1, "accuracy": of_words["accuracy"]}

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        """Resamples of texts; the words of a text go together."""
        found, known = logits.argmax(dim=-1), labels != NO_LABEL
        of_text = known.nonzero()[:, 0]
        of_words = resampled_scores(labels[known], found[known], counts[:, of_text])
        if not are_entities(self.labels):
            return of_words
        truth, predicted = (
            [set(_spans(row)) for row in self._row_tags(labels, tags)] for tags in (labels, found)
        )
        sizes = [
            (len(there & given), len(given) + len(there))
            for there, given in zip(truth, predicted, strict=True)
        ]
        right, both = (counts @ torch.tensor(sizes, dtype=counts.dtype)).unbind(dim=1)
        return {"entity-f1": 2 * right / both.clamp(min=1), "accuracy": of_words["accuracy"]}

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        found, known = logits.argmax(dim=-1), labels != NO_LABEL
        if not are_entities(self.labels):
            of_words = labels[known].tolist(), found[known].tolist()
            rates = per_class(*of_words, len(self.classes))
            matrix = confusion(*of_words, len(self.classes))
            return Errors(dict(zip(self.classes, rates, strict=True)), matrix)
        from seqeval.metrics import classification_report

        table = classification_report(
            *(self._entity_tags(labels, labels), self._entity_tags(labels, found)),
            output_dict=True,
            zero_division=0,
        )
        empty = {"precision": 0.0, "recall": 0.0, "f1-score": 0.0, "support": 0}
        rows = {name: table.get(name, empty) for name in self.classes}
        return Errors(
            {
                name: {
                    "precision": float(row["precision"]),
                    "recall": float(row["recall"]),
                    "f1": float(row["f1-score"]),
                    "examples": int(row["support"]),
                }
                for name, row in rows.items()
            }
        )

    def counts(self, labels: Tensor) -> dict[str, int]:
        """Spans of each type, or words of each tag."""
        tags = self._row_tags(labels, labels)
        if not are_entities(self.labels):
            counted = Counter(tag for row in tags for tag in row)
        else:
            counted = Counter(name for row in tags for name, _, _ in _spans(row))
        return {name: counted[name] for name in self.classes}

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        most = train[train != NO_LABEL].bincount().argmax()
        return self._scores(labels, most.expand(labels.shape))

    def finish(self, model: Any) -> None:
        """Does nothing: transformers' own argmax over the tags is right."""

    def undo_finish(self, model: Any, config: Any) -> str | None:
        return None

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        found = logits.argmax(dim=-1).cpu().tolist()
        return [self._decoded(*row) for row in zip(found, texts, offsets, strict=True)]

    def _decoded(
        self, found: Sequence[int], text: str, places: Sequence[tuple[int, int]]
    ) -> Decoded:
        tagged = [
            (start, end, self.labels[found[token]])
            for token, start, end in _words_of_tokens(text, places)
        ]
        if are_entities(self.labels):
            spans = _spans([tag for _, _, tag in tagged])
            tagged = [(tagged[first][0], tagged[last][1], name) for name, first, last in spans]
        return Decoded(
            [
                {"start": start, "end": end, "label": name, "text": text[start:end]}
                for start, end, name in tagged
            ]
        )

    def _row_tags(self, labels: Tensor, found: Tensor) -> list[list[str]]:
        """The tags of each row's words."""
        return [
            [self._tags[i] for i in row[known].tolist()]
            for row, known in zip(found, labels != NO_LABEL, strict=True)
        ]

    def _entity_tags(self, labels: Tensor, found: Tensor) -> list[list[str]]:
        """The tags of each row's words, as seqeval knows them."""
        return [_iobes(row) for row in self._row_tags(labels, found)]


def _words(label: Label) -> list[TaggedWord]:
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


def _words_of_tokens(
    text: str, places: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """The token of each word of a text, with the word's start and end.

    In scripts without spaces a character is a word, and a token may cover several: what it covers
    is one word here.
    """
    words = word_places(text)
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
    """Type, first word and last word of each span."""
    from seqeval.metrics.sequence_labeling import get_entities

    found: list[tuple[str, int, int]] = get_entities(_iobes(tags))
    return found


def _iobes(tags: Sequence[str]) -> list[str]:
    """Tags with S- and E- for the U- and L- of BILOU, which seqeval takes for parts of any span.

    A tag of dev or test without a prefix is part of no span.
    """
    return [
        {"U-": "S-", "L-": "E-"}.get(tag[:2], tag[:2]) + tag[2:] if is_entity(tag) else OUTSIDE
        for tag in tags
    ]
