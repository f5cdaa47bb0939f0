"""Whether signals rank objectives like the scores of training on each of them alone."""

import csv
import json
import re
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from aang_core.errors import DataError
from benchmarks.signal_quality.figures import SignalQuality

_LEAST = 3
"""A ranking of fewer objectives means nothing."""


@dataclass(frozen=True)
class Agreement:
    """Spearman's rank correlation of a variant's values with scores.

    Attributes:
        variant: name of the variant.
        correlation: the correlation; None if fewer than three objectives have both, or one is
            constant.
        objectives: number of objectives with both.
    """

    variant: str
    correlation: float | None
    objectives: int


def scores_of(
    objectives: Sequence[str], scores: Mapping[str, float], source: object
) -> dict[str, float]:
    """The scores of those objectives that have one.

    Args:
        objectives: names of the objectives that are measured.
        scores: scores of objectives trained alone, as :func:`read_scores` returns them.
        source: where they come from, for messages.

    Raises:
        DataError: fewer than three of the objectives have a score.
    """
    known = {plain(name): score for name, score in scores.items()}
    found = {name: known[plain(name)] for name in objectives if plain(name) in known}
    if len(found) < _LEAST:
        raise DataError(
            f"{source}: has scores of {len(found)} of the {len(objectives)} objectives of the "
            f"space; give at least {_LEAST}, named as the objectives are, such as "
            f"{objectives[0]}"
        )
    return found


def agreements(quality: SignalQuality, scores: Mapping[str, float]) -> list[Agreement]:
    """The agreement of every variant, in the order of the table.

    Args:
        quality: the measurement.
        scores: of objectives trained alone, by the objective's name.
    """
    found = []
    for variant in quality.variants:
        pairs = [
            (value, scores[o.name])
            for o in quality.objectives
            if o.name in scores
            and variant in o.figures
            and (value := o.figures[variant].value) is not None
        ]
        found.append(Agreement(variant, _spearman(pairs), len(pairs)))
    return found


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation; None for too few pairs, or where all values are equal."""
    columns = list(zip(*pairs, strict=True))
    if len(pairs) < _LEAST or any(len(set(column)) == 1 for column in columns):
        return None
    return statistics.correlation(*map(_ranks, columns))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [(bisect_left(ordered, v) + bisect_right(ordered, v) + 1) / 2 for v in values]


def plain(name: str) -> str:
    """A name with a hyphen for every separator, since names of methods cannot contain a slash."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_scores(path: Path) -> dict[str, float]:
    """Dev scores by name, from the JSON of ``aang compare``, a CSV file or a JSON mapping.

    A method of a comparison has the name of its objective, with any character in place of a slash.
    A CSV file has a column ``objective`` or ``method`` and a column ``dev`` or ``score``. Several
    scores of one name, such as those of seeds, count as their mean.

    Raises:
        DataError: the file cannot be read, contains something else, or covers several tasks.
    """
    try:
        # Without newline translation: a quoted name may hold line breaks of any system.
        text = path.read_bytes().decode("utf-8-sig")
        if path.suffix == ".csv":
            rows: list[Any] = list(csv.DictReader(StringIO(text, newline="")))
        else:
            content = json.loads(text)
            rows = (
                [{"objective": name, "score": score} for name, score in content.items()]
                if isinstance(content, dict)
                else list(content)
            )
        tasks = {row["task"] for row in rows if "task" in row}
        if len(tasks) > 1:
            raise DataError(
                f"{path}: contains scores of several tasks ({', '.join(sorted(tasks))}); give "
                "only those of the measured task"
            )
        scores: dict[str, list[float]] = {}
        for row in rows:
            name = row["objective"] if "objective" in row else row["method"]
            score = row["score"] if "score" in row else row["dev"]
            scores.setdefault(str(name), []).extend(_numbers(score))
        return {name: statistics.fmean(values) for name, values in scores.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: cannot be read as scores of objectives ({error}); give a CSV file with the "
            "columns objective and dev, or the JSON that aang compare writes"
        ) from error


def _numbers(value: Any) -> Iterable[float]:
    return [float(part) for part in value] if isinstance(value, list) else [float(value)]
