"""What ``aang train`` prints when a run has ended."""

from typing import TYPE_CHECKING

from aang_core.cli.output import echo, folded
from aang_core.cli.tables import print_table
from aang_core.training.evaluation import shown_score

if TYPE_CHECKING:
    from aang.runs.run import Run
    from aang.runs.schema import PlainFineTuning, Scores

FEW_ROWS = 100
"""With fewer dev rows than this, the outcome says how little a dev score tells."""


def print_result(run: "Run") -> None:
    """Print the scores of a run, and where it is."""
    outcome, recipe = run.outcome, run.options.get("recipe")
    chosen = outcome.metric

    def shown(of: "Scores | PlainFineTuning") -> list[str]:
        return [shown_score(of.dev, chosen.name), shown_score(of.test, chosen.name)]

    rows = [
        [f"this run ({recipe or outcome.weighter})", chosen.shown("dev"), chosen.shown("test")],
        [outcome.baseline, *shown(outcome.majority)],
    ]
    if reference := outcome.fine_tuning:
        name = f"plain fine-tuning, mean of {reference.seeds} seeds"
        rows.insert(1, [name, *shown(reference)])
    steps = run.config.steps
    if outcome.steps < steps:
        patience = run.config.patience
        evaluations = "1 evaluation" if patience == 1 else f"{patience} evaluations in a row"
        echo(
            folded(
                f"Training stopped early, after step {outcome.steps} of {steps}: {evaluations} had "
                "no better dev score."
            )
        )
    else:
        echo(f"All {steps} steps were trained.")
    if outcome.best_step == 0:
        sentence = (
            "No step of training beat the model that it began with on dev, so that one is kept:"
        )
        echo(folded(sentence))
    else:
        echo(f"The best model is from step {outcome.best_step}:")
    if tuned := outcome.final_fine_tuning:
        echo(
            "Fine-tuned on the end task alone, "
            f"from {shown_score(tuned.before.dev, chosen.name)} to "
            f"{shown_score(tuned.after.dev, chosen.name)} on dev:"
            if tuned.kept
            else "Fine-tuning it on the end task alone did not improve dev and was undone:"
        )
    name = f"{chosen.name}, 95% interval" if chosen.intervals else chosen.name
    print_table([name, "dev", "test"], rows)
    _print_few_rows(run)
    _print_control(run)
    model = str(run.folder / outcome.model)
    echo(f"Everything about this run is in {run.folder}. Its model is an ordinary transformers")
    echo("folder, which needs no AANG:")
    echo("    from transformers import pipeline")
    # A pipeline that labels tokens always cuts long texts.
    cut = "" if outcome.pipeline == "token-classification" else ", truncation=True"
    echo(f"    classify = pipeline({outcome.pipeline!r}, model={model!r}{cut})")


def _print_few_rows(run: "Run") -> None:
    """Print that the dev score says little if dev is small."""
    rows = run.records.data.parts["dev"].examples
    if rows < FEW_ROWS and run.outcome.metric.intervals:
        echo(
            folded(
                f"Dev has only {rows} rows, so its score may be off by chance: in brackets is "
                "where 95% of resamples of these rows score. --dev and --dev-fraction give more."
            )
        )


def _print_control(run: "Run") -> None:
    """Print what the control scores, if it is ahead of the model: on test where there is one."""
    from aang.runs.linear_controls import TF_IDF
    from aang.task_types.choose import task_type_named

    chosen, controls = run.outcome.metric, run.outcome.controls
    if TF_IDF not in controls:
        return
    control, part = controls[TF_IDF], "dev" if chosen.test is None else "test"
    own, other = (chosen.dev, control.dev) if part == "dev" else (chosen.test, control.test)
    if own is None or other is None or other <= own:
        return
    kind = task_type_named(run.records.data.task_type)
    dev, test = (shown_score(score, chosen.name) for score in (control.dev, control.test))
    scores = f"{dev} on dev" if control.test is None else f"{dev} on dev, {test} on test"
    echo(
        folded(
            f"TF-IDF with {kind.linear} on the same rows: {scores}, ahead of this model on {part}."
        )
    )
