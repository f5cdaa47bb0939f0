"""Progress of a training: a live table in a notebook, what the command line shows elsewhere."""

import html
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aang.cli.progress import losses_in_words, training_progress
from aang.runs.encoder_training import METRIC
from aang.runs.training import Observe
from aang_core.cli.output import echo
from aang_core.training.evaluation import shown_score
from aang_core.training.trainer import Observer

_ROWS = 10
"""Evaluations that the table shows: the last ones, and the best."""


@contextmanager
def progress(*, quiet: bool) -> Iterator[Observe]:
    """Yield a function that makes the observers of each training of a run; none if ``quiet``."""
    show = None if quiet else notebook_display()
    if show is None:
        if not quiet:
            echo("reading data and loading the encoder ...", err=True)
        with training_progress(quiet=quiet) as observe:
            yield observe
        return
    shown = show("reading data and loading the encoder …")
    tables: list[LiveTable] = []

    def observe_in_notebook(stage: str, steps: int, metric: str) -> Sequence[Observer]:
        def show_all() -> None:
            shown("".join(table.html() for table in tables))

        tables.append(LiveTable(show_all, stage, steps, metric))
        return tables[-1:]

    with training_progress(quiet=True):
        yield observe_in_notebook


def notebook_display() -> Callable[[str], Callable[[str], None]] | None:
    """What shows HTML under the running cell and returns what replaces it; None outside notebooks.

    Outside a kernel there is nothing to show it on; a terminal of IPython is not one.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    def show(content: str) -> Callable[[str], None]:
        handle = display(HTML(content), display_id=True)

        def update(content: str) -> None:
            handle.update(HTML(content))

        return update

    return show


class LiveTable:
    """Shows a bar, the dev scores and training losses so far, λ_e and the largest weight.

    Args:
        show: shows the present state.
        stage: the name of the training; empty for the main one.
        steps: its number of steps.
        metric: the score that the best model is chosen by.
    """

    def __init__(self, show: Callable[[], None], stage: str, steps: int, metric: str) -> None:
        self._show = show
        self._stage = stage
        self._steps = steps
        self._metric = metric
        self._step = 0
        self._weights = ""
        self._scores: list[tuple[int, float, bool, str, str]] = []
        self._every = max(1, steps // 100)

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Move the bar; at most about a hundred times in a training."""
        weights: Mapping[str, float] = record["weights"]
        self._weights = f"λ_e {record['end_task_weight']:.2f}" if weights else ""
        if weights and max(weights.values()) > min(weights.values()):
            self._weights += f" · top {max(weights, key=lambda name: weights[name])}"
        before, self._step = self._step, step
        if step // self._every > before // self._every:
            self._show()

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Add a row of scores and losses."""
        self._step = step
        lost = losses_in_words(losses)
        self._scores.append((step, dev[self._metric], best, lost, self._weights))
        self._show()

    def html(self) -> str:
        """The present state."""
        best = max((i for i, row in enumerate(self._scores) if row[2]), default=None)
        first = max(0, len(self._scores) - _ROWS)
        shown = [i for i in range(len(self._scores)) if i >= first or i == best]
        part = "held-out" if self._metric == METRIC else "dev"
        rows = "".join(self._row(*self._scores[i], bold=i == best) for i in shown)
        columns = ("step", f"{part} {html.escape(self._metric)}", "training loss", "weights")
        head = "".join(f"<th>{column}</th>" for column in columns)
        return (
            f"<div>{html.escape(self._stage or 'training')} "
            f'<progress value="{self._step}" max="{self._steps}"></progress> '
            f"{self._step}/{self._steps}</div>"
            f"<table><tr>{head}</tr>{rows}</table>"
        )

    def _row(
        self, step: int, score: float, best: bool, losses: str, weights: str, *, bold: bool
    ) -> str:
        figure = shown_score(score, self._metric)
        figure = f"<b>{figure}</b>" if bold else figure
        cells = (str(step), figure, losses.removeprefix("loss "), html.escape(weights))
        return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
