"""Progress of a training: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aang.modeling.loading import no_model_bars
from aang.runs.outcome import peak_memory_bytes
from aang.runs.summary import duration
from aang.runs.training import Observe
from aang.task_types.metrics import LOG_LIKELIHOOD, shown_score
from aang_core.cli.output import echo, one_line
from aang_core.tasks.workbench import END_TASK

MEASURED = 4
"""Steps after which the time of all steps is estimated."""
WORTH_TELLING = 10.0
"""Seconds above which training prints its estimate, and other work its first line."""
A_LINE_EVERY = 60.0
"""Seconds between lines about other work, where there is no terminal."""


class TrainingProgress:
    """What people see of a training: step, dev scores, training losses, λ_e, the largest weight.

    The losses are means since the last evaluation: the end task's, then that of the objectives that
    were trained.

    Args:
        stage: the name of the training; empty for the main one.
        steps: its number of steps.
        metric: the score that the best model is chosen by.
        show: called after every round, with False, and after every evaluation, with True.
    """

    def __init__(self, stage: str, steps: int, metric: str, show: "Show") -> None:
        self.stage, self.steps, self.step = stage or "training", steps, 0
        self._metric = metric
        self._show = show
        self._score = self._losses = self._weights = ""

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        weights: Mapping[str, float] = record["weights"]
        used = record.get("coefficients", {}).get(END_TASK, record["end_task_weight"])
        self.step, self._weights = step, f"λ_e {used:.2f}" if weights else ""
        if weights and max(weights.values()) > min(weights.values()):
            self._weights += f" · top {max(weights, key=lambda name: weights[name])}"
        self._show(self, False)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        part = "held-out" if self._metric == LOG_LIKELIHOOD else "dev"
        self._score = f"{part} {self._metric} {shown_score(dev[self._metric], self._metric)}"
        self._score += " (best)" if best else ""
        self.step, self._losses = step, _in_words(losses)
        self._show(self, True)

    def state(self) -> str:
        """The last score and losses, and the present weights."""
        return one_line(" · ".join(filter(None, (self._score, self._losses, self._weights))))


Show = Callable[[TrainingProgress, bool], None]


class Lines:
    """A line after each evaluation, and once how long all steps will take, unless that is short."""

    def __init__(self) -> None:
        self._timed: tuple[int, float] | None = None
        self._told = False

    def __call__(self, training: TrainingProgress, evaluated: bool) -> None:
        if evaluated:
            where = "" if training.stage == "training" else f"{training.stage}, "
            echo(f"{where}step {training.step}: {training.state()}", err=True)
        elif not self._told:
            self._expect(training)

    def _expect(self, training: TrainingProgress) -> None:
        now = time.perf_counter()
        if self._timed is None:  # the first round takes longer than the others
            self._timed = training.step, now
            return
        first, began = self._timed
        measured = training.step - first
        if measured < MEASURED:
            return
        self._told = True
        seconds = (now - began) / measured * training.steps
        if seconds >= WORTH_TELLING:
            echo(
                f"{training.stage}: about {duration(seconds)} for {training.steps} steps, an "
                f"estimate from {measured} of them; peak memory so far "
                f"{peak_memory_bytes() / 1e9:.2f} GB",
                err=True,
            )


def _in_words(losses: Mapping[str, float]) -> str:
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
    # A library's bar would stay on the terminal above ours.
    with _no_dataset_bars(), no_model_bars():
        if quiet:
            yield lambda stage, steps, metric: []
        elif not console.is_terminal:
            yield lambda stage, steps, metric: [TrainingProgress(stage, steps, metric, Lines())]
        else:
            with Progress(*columns, console=console) as bars:
                yield partial(_with_bar, bars)


@contextmanager
def _no_dataset_bars() -> Iterator[None]:
    """Hide the bars of ``datasets`` in the block."""
    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _with_bar(bars: Progress, stage: str, steps: int, metric: str) -> Sequence[TrainingProgress]:
    bar = bars.add_task(stage or "training", total=steps, state="")

    def show(training: TrainingProgress, evaluated: bool) -> None:
        bars.update(bar, completed=training.step, state=training.state())

    return [TrainingProgress(stage, steps, metric, show)]


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Show on standard error how many items are done; nothing if ``quiet``."""
    console = Console(stderr=True)
    # A bar of datasets would stay on the terminal above ours.
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
