"""Controls that take seconds: is a deep model worth it on this task at all?

The linear model that every run fits to TF-IDF (`aang.runs.linear_result`), on TF-IDF and on
features of the frozen encoder: the first token's, and the mean over tokens.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from aang.assembly import encoder_of, metric_of, predict, read_end_task
from aang.config import TrainConfig, with_absolute_paths
from aang.corpora import LabelledTask, tokenize
from aang.modeling import load_text_model, load_tokenizer
from aang.runs import TF_IDF, ChosenScores, choose_device, linear_result, tf_idf
from torch import Tensor, nn

from aang_core import AangError, Example, ReadReport
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import (
    ENCODED,
    FROZEN,
    PENALTIES,
    QUICK_CONTROLS,
    ControlResult,
    asked_of,
    read_result,
    result_file,
    write_result,
)
from aang_plugin_compare.run_folders import newer

MOST_TEXTS = 20_000
"""With more texts in train, dev and test together, these controls are slow and left out."""


class FrozenEncoder:
    """A pre-trained encoder; each text goes through it once, even if several draws contain it.

    Args:
        encoder: folder or hub name of the encoder.
        config: how it is loaded, and how many tokens texts are truncated to.
        device: the device it computes on.
    """

    def __init__(self, encoder: str, config: TrainConfig, device: torch.device) -> None:
        tokenizer = load_tokenizer(encoder, trust_remote_code=config.trust_remote_code)
        # This loads a classifier; only its body is used.
        model = load_text_model(
            encoder,
            tokenizer,
            ("0", "1"),
            from_scratch=config.from_scratch,
            allow_missing_weights=config.allow_missing_weights,
            trust_remote_code=config.trust_remote_code,
        )
        self._tokenizer = tokenizer
        self._max_length = min(config.max_length, model.max_length)
        self._body = _FirstAndMean(model.body).to(device)
        self._known: dict[tuple[str, str | None], Tensor] = {}
        self._seconds = 0.0

    @property
    def seconds_per_text(self) -> float:
        """Mean seconds per text."""
        return self._seconds / max(1, len(self._known))

    def __call__(self, examples: Sequence[Example]) -> Any:
        """Features of N texts: the hidden state of the first token, and the mean over tokens.

        Returns:
            A float32 array ``[N, 2, H]``.

        Raises:
            AangError: the tokenizer cannot be used.
        """
        new = {
            key: Example(*key)
            for key in ((e.text, e.text_pair) for e in examples)
            if key not in self._known
        }
        if new:
            begin = time.perf_counter()
            rows = tokenize(
                list(new.values()), self._tokenizer, max_length=self._max_length, cache=None
            )
            features = predict(self._body, rows)
            self._known.update(zip(new, features, strict=True))
            self._seconds += time.perf_counter() - begin
        found = torch.stack([self._known[e.text, e.text_pair] for e in examples])
        return found.unflatten(1, (2, -1)).float().numpy()


class _FirstAndMean(nn.Module):
    """The first token's hidden state and the mean over the real tokens, ``[B, 2·H]``."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, **inputs: Tensor) -> Tensor:
        hidden: Tensor = self.body(**inputs)
        real = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        return torch.cat([hidden[:, 0], mean], dim=1)


@dataclass
class QuickControls:
    """Computes the quick controls of a comparison that have no result yet.

    Attributes:
        root: the folder of the comparison.
        tell: called with a line, and False for a result or True for one that failed or is left out.
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
            try:
                self._make(cell)
            except AangError as error:
                self.tell(f"{cell.task}/quick controls/seed-{cell.seed}: Error: {error}", True)

    def _is_there(self, cell: Cell, name: str, data: str) -> bool:
        path = result_file(self.root, cell.task, name, cell.seed)
        found = read_result(path)
        if found is None or (found.asked, found.data) != (asked_of(cell.config, name), data):
            return False
        # An encoder that was made anew in its folder has other features.
        encoder = with_absolute_paths(cell.config).model or ""
        return name not in FROZEN or not any(newer([encoder], path))

    def _make(self, cell: Cell) -> None:
        config = cell.config.model_copy(update={"trust_remote_code": self.trust_remote_code})
        task, draw = read_end_task(config, ReadReport())
        if why := _left_out(task):
            self.tell(f"{cell.task}/quick controls/seed-{cell.seed}: left out, {why}", True)
            return
        metric = metric_of(config, task.task_type)
        for name in self.names:
            if self._is_there(cell, name, task.digest):
                continue
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
                metric=ChosenScores(
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
                data=task.digest,
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
    if task.task_type.linear is None:
        return f"they predict from a whole text, and {task.task_type.name} are of words"
    return ""
