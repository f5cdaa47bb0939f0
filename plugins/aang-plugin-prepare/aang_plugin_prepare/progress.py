"""Progress of preparing an encoder: a bar on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from aang.runs.encoder_training import ACCURACY
from aang.task_types.metrics import LOG_LIKELIHOOD
from datasets import disable_progress_bars
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from aang_core.cli.output import echo
from aang_core.training.trainer import Clock, Observer
from aang_plugin_prepare.config import PreparationConfig


class PreparationBar:
    """Shows step, loss and accuracy on held-out text, and the time left."""

    def __init__(self, progress: Progress, config: PreparationConfig, clock: Clock) -> None:
        self._progress = progress
        self._config = config
        self._clock = clock
        self._bar = progress.add_task("preparing", total=config.steps or config.seconds, state="")
        self._scores = ""

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self._progress.update(
            self._bar, completed=step if self._config.steps else self._clock.seconds
        )
        of = f" of {self._config.steps}" if self._config.steps else ""
        seconds = self._progress.tasks[self._bar].time_remaining
        left = "" if seconds is None else f"{timedelta(seconds=seconds)} left"
        parts = [f"step {step}{of}", self._scores, left]
        self._progress.update(self._bar, state=" · ".join(filter(None, parts)))

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        self._scores = f"held-out loss {-dev[LOG_LIKELIHOOD]:.4f}"
        if ACCURACY in dev:
            self._scores += f" · accuracy {dev[ACCURACY]:.4f}"
        self.after_round(step, {})
        if not self._progress.console.is_terminal:
            echo(self._progress.tasks[self._bar].fields["state"], err=True)


@contextmanager
def preparation_progress(
    config: PreparationConfig, *, quiet: bool
) -> Iterator[Callable[[Clock], Sequence[Observer]]]:
    """Yield a function that makes the observers that show the training; no observers if ``quiet``.

    Everything goes to standard error, so that standard output contains only the result.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        disable_progress_bars()
    if quiet:
        yield lambda clock: []
        return
    echo("reading text and loading the encoder ...", err=True)
    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[state]}", markup=False))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield lambda clock: [PreparationBar(progress, config, clock)]
