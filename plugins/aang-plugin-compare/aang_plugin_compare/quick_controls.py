"""Controls that take seconds: is a deep model worth it on this task at all?

A linear model (logistic regression, one per class where a text has several, or ridge regression) on
TF-IDF of words and pairs of words, and on features of the encoder without any training: the first
token's, and the mean over tokens. The penalty is chosen on dev.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer

from aang_core import AangError, Example, Metric, ReadReport
from aang_core.assembly import encoder_of, metric_of, read_end_task
from aang_core.config import TrainConfig
from aang_core.corpora import LabelledTask
from aang_core.runs import choose_device
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import (
    FROZEN,
    QUICK_CONTROLS,
    TF_IDF,
    ControlMetric,
    ControlResult,
    read_result,
    result_file,
    write_result,
)
from aang_plugin_compare.frozen_encoder import FrozenEncoder
from aang_plugin_compare.linear import LINEAR, labels_of
from aang_plugin_compare.quick_options import ENCODED, PENALTIES, asked_of

MOST_TEXTS = 20_000
"""With more texts in train, dev and test together, these controls are slow and left out."""


@dataclass
class QuickControls:
    """Computes the quick controls of a comparison that have no result yet.

    Attributes:
        root: the folder of the comparison.
        tell: called with a line for each result and False, and with a line for each failure and
            True.
        trust_remote_code: whether Python code that comes with the model may be run.
    """

    root: Path
    tell: Callable[[str, bool], None]
    trust_remote_code: bool = False
    _encoders: dict[tuple[Any, ...], FrozenEncoder] = field(default_factory=dict)

    def run(self, comparison: Comparison, *, seconds: float | None = None) -> None:
        """Compute them for every task and seed, with the data and encoder of the baseline.

        Without a baseline, data and encoder of the first method are used. A failure is reported
        and does not stop the others.

        Args:
            comparison: the comparison.
            seconds: start no control after this time.

        Raises:
            StorageError: a result cannot be written.
        """
        end = float("inf") if seconds is None else time.monotonic() + seconds
        for cell in comparison.leading():
            if time.monotonic() >= end:
                return
            missing = [name for name in QUICK_CONTROLS if not self._is_there(cell, name)]
            if not missing:
                continue
            try:
                self._make(cell, missing)
            except AangError as error:
                self.tell(f"{cell.task}/quick controls/seed-{cell.seed}: Error: {error}", True)

    def _is_there(self, cell: Cell, name: str) -> bool:
        found = read_result(result_file(self.root, cell.task, name, cell.seed))
        return found is not None and found.asked == asked_of(cell.config, name)

    def _make(self, cell: Cell, names: Sequence[str]) -> None:
        config = cell.config.model_copy(update={"trust_remote_code": self.trust_remote_code})
        task, draw = read_end_task(config, ReadReport())
        if why := _left_out(task):
            self.tell(f"{cell.task}/quick controls/seed-{cell.seed}: left out, {why}", True)
            return
        metric = metric_of(config, task.task_type)
        for name in names:
            begin = time.perf_counter()
            if name == TF_IDF:
                parts, encoding = _tf_idf((task.train, task.dev, task.test)), 0.0
            else:
                parts, encoding = self._encoded(name, config, task)
                begin = time.perf_counter()
            chosen, penalty = _best(parts, task, metric, PENALTIES[name])
            result = ControlResult(
                control=name,
                quick=True,
                seed=cell.seed,
                metric=chosen,
                setting=f"C={penalty:g}",
                tried=len(PENALTIES[name]),
                seconds=round(encoding + time.perf_counter() - begin, 3),
                asked=asked_of(cell.config, name),
                rows=None if draw is None else draw.digest,
            )
            write_result(self.root, cell.task, result)
            self.tell(f"{cell.task}/{name}/seed-{cell.seed}: done", False)

    def _encoded(
        self, name: str, config: TrainConfig, task: LabelledTask
    ) -> tuple[list[Any], float]:
        """Features of the parts, and the seconds that they would take without a cache."""
        key = (*(getattr(config, option) for option in ENCODED), config.device)
        if key not in self._encoders:
            # Only one encoder at a time, because all its features stay in memory.
            device = choose_device(config.device)
            self._encoders = {key: FrozenEncoder(encoder_of(config), config, device)}
        encoder = self._encoders[key]
        parts = (task.train, task.dev, task.test)
        features = [encoder(part)[:, FROZEN.index(name)] if part else None for part in parts]
        return features, encoder.seconds_per_text * sum(map(len, parts))


def _left_out(task: LabelledTask) -> str:
    """Why there are no quick controls for a task; empty if there are."""
    texts = len(task.train) + len(task.dev) + len(task.test)
    if texts > MOST_TEXTS:
        return f"{texts} texts are more than {MOST_TEXTS}"
    if task.task_type.name not in LINEAR:
        return f"they predict from a whole text, and {task.task_type.name} are of words"
    return ""


def _tf_idf(parts: Sequence[Sequence[Example]]) -> list[Any]:
    # Punctuation counts, because tasks use it to mark what they ask about, as in "[[ this ]]".
    pattern = r"(?u)\w+|[^\w\s]+"
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=pattern)
    texts = [[" ".join(filter(None, (e.text, e.text_pair))) for e in part] for part in parts]
    return [
        vectors.fit_transform(texts[0]),
        *(vectors.transform(t) if t else None for t in texts[1:]),
    ]


def _best(
    parts: Sequence[Any], task: LabelledTask, metric: Metric, penalties: Sequence[float]
) -> tuple[ControlMetric, float]:
    """The scores with the penalty that is best on dev; the strongest penalty wins ties."""
    kind = task.task_type
    train, dev, test = (labels_of(task, part) for part in (task.train, task.dev, task.test))
    found: list[tuple[float, float, Any, Any]] = []
    for penalty in penalties:
        model = LINEAR[kind.name](parts[0], train, penalty)
        outputs = model(parts[1])
        tuned = kind.tuned(dev, outputs, metric)
        found.append((tuned.scores(dev, outputs)[metric], penalty, model, tuned))
    score, penalty, model, tuned = max(found, key=lambda one: one[0])
    on_test = tuned.scores(test, model(parts[2]))[metric] if task.test else None
    return ControlMetric(name=metric, dev=score, test=on_test), penalty
