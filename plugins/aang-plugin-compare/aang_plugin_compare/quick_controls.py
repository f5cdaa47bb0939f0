"""Controls that take seconds: is a deep model worth it on this task at all?

A linear model, as every run has it for TF-IDF (`aang.runs.linear_result`), on TF-IDF and on
features of the encoder without any training: the first token's, and the mean over tokens.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aang.assembly import encoder_of, metric_of, read_end_task
from aang.config import TrainConfig
from aang.corpora import LabelledTask
from aang.runs import LINEAR, TF_IDF, choose_device, linear_result, tf_idf

from aang_core import AangError, ReadReport
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import (
    FROZEN,
    QUICK_CONTROLS,
    ControlMetric,
    ControlResult,
    read_result,
    result_file,
    write_result,
)
from aang_plugin_compare.frozen_encoder import FrozenEncoder
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
        names: the controls.
    """

    root: Path
    tell: Callable[[str, bool], None]
    trust_remote_code: bool = False
    names: Sequence[str] = QUICK_CONTROLS
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
            missing = [name for name in self.names if not self._is_there(cell, name)]
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
                parts, encoding = tf_idf((task.train, task.dev, task.test)), 0.0
            else:
                parts, encoding = self._encoded(name, config, task)
                begin = time.perf_counter()
            found = linear_result(parts, task, metric, PENALTIES[name])
            result = ControlResult(
                control=name,
                quick=True,
                seed=cell.seed,
                metric=ControlMetric(
                    name=metric,
                    dev=found.scores.dev,
                    test=found.scores.test,
                    intervals={part: list(ends) for part, ends in found.intervals.items()},
                ),
                setting=f"C={found.penalty:g}",
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
