"""Progress of preparing an encoder: a bar on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aang.runs.encoder_training import ACCURACY, METRIC
from aang.runs.preparation_config import PreparationConfig
from datasets import disable_progress_bars
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from aang_core.cli.output import echo
from aang_core.training.trainer import Clock, Observer


class PreparationBar:
    """Shows step, loss and accuracy on held-out text, and the time left."""

    def __init__(self, progress: Progress, config: PreparationConfig, clock: Clock) -> None:
        self._progress = progress
        self._config = config
        self._clock = clock
        self._bar = progress.add_task("preparing", total=1.0, state="")
        self._began: tuple[int, float] | None = None
        self._scores = ""
        self._interactive = progress.console.is_terminal

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        if self._began is None:
            self._began = step, self._clock.seconds
        self._show(step)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        self._scores = f"held-out loss {-dev[METRIC]:.4f}"
        if ACCURACY in dev:
            self._scores += f" · accuracy {dev[ACCURACY]:.4f}"
        self._show(step)
        if not self._interactive:
            echo(self._state(step), err=True)

    def _show(self, step: int) -> None:
        done = self._clock.share if self._config.steps is None else step / self._config.steps
        self._progress.update(self._bar, completed=done, state=self._state(step))

    def _state(self, step: int) -> str:
        of = "" if self._config.steps is None else f" of {self._config.steps}"
        left = self._left(step)
        parts = [f"step {step}{of}", self._scores, "" if left is None else f"{_time(left)} left"]
        return " · ".join(part for part in parts if part)

    def _left(self, step: int) -> float | None:
        """Seconds left; None until it is known how long a step takes."""
        if self._clock.limit is not None:
            return max(0.0, self._clock.limit - self._clock.seconds)
        if self._began is None or self._config.steps is None or step == self._began[0]:
            return None
        rate = (self._clock.seconds - self._began[1]) / (step - self._began[0])
        return rate * (self._config.steps - step)


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


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
