"""A random draw of training rows, to measure how a method does with few labels."""

import hashlib
import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from aang.corpora.labelled import hashable
from aang.corpora.labelled_task import LabelledTask
from aang_core.errors import ConfigError


@dataclass(frozen=True)
class TrainDraw:
    """Which rows of the full training set were drawn.

    Attributes:
        rows: their indices in the full set, ascending.
        of: number of rows of the full set.
        digest: fingerprint of the indices, texts and labels, 32 hexadecimal digits.
    """

    rows: tuple[int, ...]
    of: int
    digest: str


def draw_train(task: LabelledTask, size: int, seed: int) -> tuple[LabelledTask, TrainDraw]:
    """Draw ``size`` training rows by class; the others become the task's ``rest``.

    Classes keep their shares as closely as whole rows allow, and each has at least one row. Rows
    stay in file order. The same task, size and seed give the same rows.

    Raises:
        ConfigError: there are fewer rows than ``size``, or more classes.
    """
    labels = task.task_type.strata([e.label for e in task.train if e.label is not None])
    if size > len(labels):
        raise ConfigError(
            f"--train-rows {size}: {task.name} has {len(labels)} training rows; give at most "
            "that, or leave the option out"
        )
    classes = len(set(labels))
    if size < classes:
        raise ConfigError(
            f"--train-rows {size}: {task.name} has {classes} classes, and each takes at "
            f"least one row; give {classes} or more"
        )
    # One number per row: a smaller draw with the same seed is then nearly a part of a larger one.
    source = random.Random(seed)
    ranked: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for index, label in enumerate(labels):
        ranked[label].append((source.random(), index))
    shares = class_shares(Counter(labels), size)
    rows = sorted(i for name, of in ranked.items() for _, i in heapq.nsmallest(shares[name], of))
    drawn = set(rows)
    rest = tuple(example for i, example in enumerate(task.train) if i not in drawn)
    train = tuple(task.train[i] for i in rows)
    content = hashlib.sha256()
    for row in rows:
        content.update(b"row %d " % row + hashable(task.train[row]))
    draw = TrainDraw(tuple(rows), len(labels), content.hexdigest()[:32])
    return replace(task, train=train, rest=rest), draw


def class_shares(sizes: Mapping[str, int], wanted: int) -> dict[str, int]:
    """Number of rows of each class: proportional to ``sizes``, at least one, ``wanted`` in total.

    Each row after the first of a class goes to the class that is furthest below its exact share.
    """
    total = sum(sizes.values())
    # Shares times total are whole numbers, so that the names alone break ties.
    short = [(total - size * wanted, name) for name, size in sorted(sizes.items())]
    heapq.heapify(short)
    shares = dict.fromkeys(sizes, 1)
    for _ in range(wanted - len(sizes)):
        below, name = short[0]
        shares[name] += 1
        heapq.heapreplace(short, (below + total, name))
    return shares
