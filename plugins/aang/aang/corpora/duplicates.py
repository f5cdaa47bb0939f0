"""Texts that occur more than once in the end task's data: overlaps and contradictions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from aang_core.objectives.stages.data import Example


@dataclass(frozen=True)
class Contradictions:
    """Texts that occur with different labels.

    Attributes:
        texts: number of such texts.
        rows: number of examples that have one of them.
        first: the first of them; None if there is none.
        labels: its labels, in the order in which they occur.
    """

    texts: int
    rows: int
    first: str | None
    labels: tuple[str, ...]


def overlaps(parts: Mapping[str, Sequence[Example]]) -> dict[tuple[str, str], int]:
    """For every two parts, how many examples of the later one have a text of the earlier one.

    Args:
        parts: the examples of each part, by its name.

    Returns:
        The counts by (later part, earlier part), without zeros.

    Examples:
        >>> from aang_core import Example
        >>> seen, new = Example("It rains.", label="wet"), Example("It snows.", label="wet")
        >>> overlaps({"train": [seen], "dev": [seen, seen, new], "test": [new]})
        {('dev', 'train'): 2, ('test', 'dev'): 1}
    """
    texts = {name: {_text(example) for example in part} for name, part in parts.items()}
    counts = {
        (later, earlier): sum(_text(example) in texts[earlier] for example in parts[later])
        for earlier, later in combinations(parts, 2)
    }
    return {pair: count for pair, count in counts.items() if count}


def contradictions(examples: Iterable[Example]) -> Contradictions:
    """Find the texts that occur with different labels.

    Examples:
        >>> from aang_core import Example
        >>> found = contradictions(
        ...     [
        ...         Example("Fine.", label="good"),
        ...         Example("Dull.", label="bad"),
        ...         Example("Fine.", label="bad"),
        ...     ]
        ... )
        >>> found.texts, found.rows, found.first, found.labels
        (1, 2, 'Fine.', ('good', 'bad'))
    """
    labels: dict[tuple[str, str | None], dict[str, int]] = {}
    for example in examples:
        counts = labels.setdefault(_text(example), {})
        # A label of another kind of task, such as a list of classes, is compared as it is written.
        label = str(example.label)
        counts[label] = counts.get(label, 0) + 1
    found = {text: counts for text, counts in labels.items() if len(counts) > 1}
    first = next(iter(found), None)
    return Contradictions(
        texts=len(found),
        rows=sum(sum(counts.values()) for counts in found.values()),
        first=None if first is None else first[0],
        labels=() if first is None else tuple(found[first]),
    )


def _text(example: Example) -> tuple[str, str | None]:
    return example.text, example.text_pair
