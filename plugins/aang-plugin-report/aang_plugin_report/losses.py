"""Losses of a run: in training, of the end task and of every objective, and on dev."""

from collections.abc import Mapping, Sequence
from typing import Literal

from aang import Run

from aang_plugin_report.charts import Lines, Series

END_TASK = "end-task"
ON_DEV = "end-task on dev"
LOSS: Literal["loss"] = "loss"
"""The end task's mean loss among what an evaluation has measured; older runs lack it."""
CURVES = 12
"""Most objectives that the chart shows; the table has all of them."""


def losses_of(run: Run) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]:
    """The steps and losses of every task, the end task first; empty for a run without a step.

    Each loss is the mean over the steps since the evaluation before, except that on dev, which is
    of the model at that step.
    """
    found: dict[str, tuple[list[int], list[float]]] = {}
    for line in run.records.evaluations:
        for name, loss in line.losses.items():
            steps, losses = found.setdefault(name, ([], []))
            steps.append(line.step)
            losses.append(loss)
    evaluated = [line for line in run.records.evaluations if LOSS in line.dev]
    if found and evaluated:
        found[ON_DEV] = ([line.step for line in evaluated], [line.dev[LOSS] for line in evaluated])
    order = [END_TASK, ON_DEV, *run.records.objectives]
    return {name: found[name] for name in sorted(found, key=order.index)}


def losses_chart(run: Run) -> Lines | None:
    """Losses over steps, of the end task and the objectives with the largest weights."""
    losses = losses_of(run)
    if not losses:
        return None
    weights = run.records.mean_weights(0.5, 1)
    of_end_task = (END_TASK, ON_DEV)
    trained = [name for name in losses if name not in of_end_task]
    ranked = sorted(trained, key=lambda name: -weights[name])
    shown = [name for name in losses if name in of_end_task or name in ranked[:CURVES]]
    left_out = len(losses) - len(shown)
    known = [name for name in (*of_end_task, *ranked[:1]) if name in losses]
    ends = [f"{name} from {losses[name][1][0]:.4f} to {losses[name][1][-1]:.4f}" for name in known]
    return Lines(
        key="losses",
        title="Losses"
        + (f", the {CURVES} objectives with the largest weights" if left_out else ""),
        x_label="step",
        y_label="loss",
        series=[Series(name, *losses[name]) for name in shown],
        mark=(run.outcome.best_step, "best on dev"),
        alt=f"In training means between evaluations: {', '.join(ends)}.",
    )
