"""What ``aang train`` prints about a run before it begins and after it has ended."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aang.task_types.metrics import shown_score
from aang_core.cli.output import echo, folded, one_line, print_table
from aang_core.plugins.registry import ONE_CLASS

if TYPE_CHECKING:
    from aang.runs.run import Run
    from aang.runs.summary import Summary

FEW_ROWS = 100
"""With fewer dev rows than this, the outcome says how little a dev score tells."""


def print_summary(summary: "Summary", *, as_json: bool = False, err: bool = False) -> None:
    """Print what a run will do, to standard error if ``err``."""
    from aang.runs.summary import in_words

    if as_json:
        echo(json.dumps(summary.document(), indent=2))
        return
    lines = in_words(summary)
    width = max(len(name) for name, _ in lines)
    for name, words in lines:
        line = f"{name:<{width}}  {one_line(words)}"
        echo(folded(line, indent=width + 2, err=err), err=err)


def print_result(run: "Run") -> None:
    """Print the scores of a run, and where it is."""
    from aang.runs.run import table_of_scores

    for sentence in _about_training(run):
        echo(folded(sentence))
    header, *rows = table_of_scores(run)
    print_table(header, rows)
    for sentence in _about_scores(run):
        echo(folded(sentence))
    outcome, model = run.outcome, str(run.folder / run.outcome.model)
    echo(f"Everything about this run is in {run.folder}. Its model is an ordinary transformers")
    echo("folder, which needs no AANG:")
    echo("    from transformers import pipeline")
    # A pipeline that labels tokens always cuts long texts.
    cut = "" if outcome.pipeline == "token-classification" else ", truncation=True"
    echo(f"    classify = pipeline({outcome.pipeline!r}, model={model!r}{cut})")
    if run.records.data.task_type == ONE_CLASS.task_type:
        echo("aang best tries this and other ways on every labelled row, and keeps the best one.")


def _about_training(run: "Run") -> Iterator[str]:
    """How many steps were trained, and which model is kept."""
    outcome, steps, patience = run.outcome, run.config.last_step, run.config.patience
    if outcome.steps < steps:
        evaluations = "1 evaluation" if patience == 1 else f"{patience} evaluations in a row"
        yield (
            f"Training stopped early, after step {outcome.steps} of {steps}: {evaluations} had no "
            "better dev score."
        )
    elif run.config.stop_after is not None:
        yield f"The first {outcome.steps} of {run.config.steps} steps were trained, as asked."
    elif outcome.steps > steps:
        yield (
            f"{outcome.steps} steps were trained, more than {steps}, because a round of the "
            "weighter takes no fewer."
        )
    else:
        yield f"All {steps} steps were trained."
    if outcome.trained_on_dev:
        yield (
            "The last model is kept. Dev rows were trained on, so their scores do not say how good "
            "it is on new texts:"
        )
    elif outcome.best_step == 0:
        yield "Training did not improve the dev score, so the model from before it is kept:"
    else:
        yield f"The best model is from step {outcome.best_step}:"
    if tuned := outcome.final_fine_tuning:
        before, after = (
            shown_score(score.dev, outcome.metric.name) for score in (tuned.before, tuned.after)
        )
        yield (
            f"Fine-tuned on the end task alone, from {before} to {after} on dev:"
            if tuned.kept
            else "Fine-tuning it on the end task alone did not improve dev and was undone:"
        )
    elif not outcome.trained_on_dev and outcome.precision not in ("", "fp32"):
        in_training = {line.step: line.dev[run.metric] for line in run.records.evaluations}
        then, now = (
            shown_score(score, outcome.metric.name)
            for score in (in_training[outcome.best_step], outcome.metric.dev)
        )
        if then != now:
            yield (
                f"Steps were scored in {outcome.precision}, this one with {then}; below is the "
                "score of the saved model, in fp32."
            )


def _about_scores(run: "Run") -> Iterator[str]:
    """Warnings that dev is small, and that a control is ahead: on test, or on dev without test."""
    from aang.runs.linear_controls import TF_IDF
    from aang.task_types.choose import task_type_named

    chosen, data = run.outcome.metric, run.records.data
    rows, held_out = data.parts["dev"].examples, not run.outcome.trained_on_dev
    if held_out and rows < FEW_ROWS and chosen.intervals:
        yield (
            f"Dev has only {rows} row{'s' * (rows > 1)}, so its score may be off by chance: in "
            "brackets is where 95% of its resamples score. --dev and --dev-fraction give more."
        )
    if (control := run.outcome.controls.get(TF_IDF)) is None:
        return
    part = "dev" if chosen.test is None else "test"
    if part == "dev" and not held_out:
        return
    own, other = chosen.on(part), control.on(part)
    if own is not None and other is not None and other > own:
        kind = task_type_named(data.task_type).linear
        scores = (
            f"{shown_score(score, chosen.name)} on {name}"
            for name in (("dev", "test") if held_out else ("test",))
            if (score := control.on(name)) is not None
        )
        yield (
            f"TF-IDF with {kind} on the same rows: {', '.join(scores)}, ahead of this "
            f"model on {part}."
        )
