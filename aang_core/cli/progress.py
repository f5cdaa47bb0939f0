"""Training as it goes, for people: a progress bar on a terminal, plain lines elsewhere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aang_core.training.evaluation import Metric


class ProgressBar:
    """Observes a training and shows step, dev score, λ_e and the objective that weighs most."""

    def __init__(self, progress: Progress, steps: int, metric: Metric) -> None:
        self._progress = progress
        self._bar = progress.add_task("training", total=steps, state="")
        self._metric = metric
        self._score = ""
        self._weights = ""
        self._interactive = progress.console.is_terminal

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        weights: Mapping[str, float] = record["weights"]
        self._weights = f"λ_e {record['end_task_weight']:.2f}"
        if weights:
            top = max(weights, key=lambda name: weights[name])
            self._weights += f" · top {top}"
        self._show(step)

    def after_evaluation(self, step: int, dev: Mapping[Metric, float], best: bool) -> None:
        self._score = f"dev {self._metric} {dev[self._metric]:.4f}" + (" (best)" if best else "")
        self._show(step)
        if not self._interactive:
            click.echo(f"step {step}: {self._state()}", err=True)

    def _show(self, step: int) -> None:
        self._progress.update(self._bar, completed=step, state=self._state())

    def _state(self) -> str:
        return " · ".join(part for part in (self._score, self._weights) if part)


@contextmanager
def training_progress(steps: int, metric: Metric, *, quiet: bool) -> Iterator[list[ProgressBar]]:
    """The observers that show a training: none if ``quiet``.

    Everything goes to standard error, so that standard output holds the result alone.
    """
    if quiet:
        yield []
        return
    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[state]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield [ProgressBar(progress, steps, metric)]
