"""Progress of a training: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from datasets import disable_progress_bars
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aang.progress_bars import no_dataset_bars, no_model_bars
from aang.runs.encoder_training import METRIC
from aang.runs.outcome import peak_memory_bytes
from aang.runs.summary import duration
from aang.runs.training import Observe
from aang_core.cli.output import echo, one_line
from aang_core.tasks.signals import END_TASK
from aang_core.training.evaluation import shown_score

MEASURED = 4
"""Steps after which the time of all steps is estimated."""
WORTH_TELLING = 10.0
"""Seconds of training above which the estimate is printed, and of other work the first line."""
A_LINE_EVERY = 60.0
"""Seconds between lines about other work, where there is no terminal."""


class ProgressBar:
    """Shows step, dev score, training losses, λ_e and the objective with the largest weight.

    The losses are means since the last evaluation: the end task's, then that of the objectives that
    were trained.
    """

    def __init__(self, progress: Progress, stage: str, steps: int, metric: str) -> None:
        self._progress = progress
        self._stage = stage
        self._bar = progress.add_task(stage or "training", total=steps, state="")
        self._metric = metric
        self._score = ""
        self._losses = ""
        self._weights = ""
        self._interactive = progress.console.is_terminal
        self._steps = steps
        self._timed: tuple[int, float] | None = None
        self._told = False

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        weights: Mapping[str, float] = record["weights"]
        used = record.get("coefficients", {}).get(END_TASK, record["end_task_weight"])
        self._weights = f"λ_e {used:.2f}" if weights else ""
        if weights and max(weights.values()) > min(weights.values()):
            self._weights += f" · top {max(weights, key=lambda name: weights[name])}"
        self._show(step)
        if not (self._interactive or self._told):
            self._expect(step)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        part = "held-out" if self._metric == METRIC else "dev"
        self._score = f"{part} {self._metric} {shown_score(dev[self._metric], self._metric)}"
        self._score += " (best)" if best else ""
        self._losses = losses_in_words(losses)
        self._show(step)
        if not self._interactive:
            where = f"{self._stage}, step" if self._stage else "step"
            echo(f"{where} {step}: {self._state()}", err=True)

    def _expect(self, step: int) -> None:
        """Print once, after a few steps, how long all of them will take, unless that is short.

        The first round does not count. A bar on a terminal shows the time left anyway.
        """
        now = time.perf_counter()
        if self._timed is None:
            self._timed = step, now
            return
        first, began = self._timed
        if step - first < MEASURED:
            return
        self._told = True
        seconds = (now - began) / (step - first) * self._steps
        if seconds >= WORTH_TELLING:
            what = self._stage or "training"
            echo(
                f"{what}: about {duration(seconds)} for {self._steps} steps, an estimate from "
                f"{step - first} of them; peak memory so far {peak_memory_bytes() / 1e9:.2f} GB",
                err=True,
            )

    def _show(self, step: int) -> None:
        self._progress.update(self._bar, completed=step, state=self._state())

    def _state(self) -> str:
        return one_line(
            " · ".join(part for part in (self._score, self._losses, self._weights) if part)
        )


def losses_in_words(losses: Mapping[str, float]) -> str:
    """The end task's loss, and the mean over the objectives; empty without any loss.

    A stage of pre-training trains a single objective in place of the end task.
    """
    objectives = [loss for name, loss in losses.items() if name != END_TASK]
    if END_TASK in losses and objectives:
        mean = sum(objectives) / len(objectives)
        return f"loss {losses[END_TASK]:.4f}, objectives {mean:.4f}"
    return f"loss {next(iter(losses.values())):.4f}" if losses else ""


@contextmanager
def training_progress(*, quiet: bool) -> Iterator[Observe]:
    """Yield a function that makes the observers of each training of a run; none if ``quiet``.

    Everything goes to standard error, so that standard output contains only the result.
    """
    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[state]}", markup=False),
    )
    # A bar of a library stays on the terminal above ours.
    with no_dataset_bars(), no_model_bars():
        if quiet:
            yield lambda stage, steps, metric: []
            return
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            yield lambda stage, steps, metric: [ProgressBar(progress, stage, steps, metric)]


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Show on standard error how many items are done; nothing if ``quiet``."""
    console = Console(stderr=True)
    # A bar of datasets stays on the terminal above ours.
    disable_progress_bars()
    if quiet:
        yield lambda done, total: None
        return
    if not console.is_terminal:
        yield _CountInLines(what)
        return
    columns = (TextColumn(what), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


class _CountInLines:
    """A line after ten seconds, and one every minute after that, with what is left."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.perf_counter()
        self._next = self._began + WORTH_TELLING

    def __call__(self, done: int, total: int | None) -> None:
        now = time.perf_counter()
        if now < self._next or done == total:
            return
        self._next = now + A_LINE_EVERY
        if total is None:
            echo(f"{self._what}: {done}", err=True)
            return
        left = (now - self._began) / done * (total - done)
        echo(f"{self._what}: {done} of {total}, about {duration(left)} left", err=True)
