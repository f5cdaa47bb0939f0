"""What ``aang train`` prints when a run has ended."""

from typing import TYPE_CHECKING

from aang_core.cli.output import echo, folded
from aang_core.cli.tables import print_table

if TYPE_CHECKING:
    from aang_core.runs.run import Run


def print_result(run: "Run") -> None:
    """Print the scores of a run, and where it is."""
    outcome, recipe = run.outcome, run.options.get("recipe")
    chosen = outcome.metric
    lines = [
        (f"this run ({recipe or outcome.weighter})", chosen.dev, chosen.test),
        (outcome.baseline, outcome.majority.dev, outcome.majority.test),
    ]
    if reference := outcome.fine_tuning:
        name = f"plain fine-tuning, mean of {reference.seeds} seeds"
        lines.insert(1, (name, reference.dev, reference.test))
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
            "No step of training beat the untrained model on dev, so the untrained one is kept:"
        )
        echo(folded(sentence))
    else:
        echo(f"The best model is from step {outcome.best_step}:")
    if tuned := outcome.final_fine_tuning:
        echo(
            "Fine-tuned on the end task alone, "
            f"from {tuned.before.dev:.4f} to {tuned.after.dev:.4f} on dev:"
            if tuned.kept
            else "Fine-tuning it on the end task alone did not improve dev and was undone:"
        )
    print_table(
        [chosen.name, "dev", "test"],
        [[name, _score(dev), _score(test)] for name, dev, test in lines],
    )
    _print_control(run)
    model = str(run.folder / outcome.model)
    echo(f"Everything about this run is in {run.folder}. Its model is an ordinary transformers")
    echo("folder, which needs no AANG:")
    echo("    from transformers import pipeline")
    echo(f"    classify = pipeline({outcome.pipeline!r}, model={model!r})")


def _print_control(run: "Run") -> None:
    """Print what the control scores, if it is ahead of the model: on test where there is one."""
    from aang_core.runs.linear_controls import TF_IDF

    chosen, controls = run.outcome.metric, run.outcome.controls
    if TF_IDF not in controls:
        return
    control, part = controls[TF_IDF], "dev" if chosen.test is None else "test"
    own, other = (chosen.dev, control.dev) if part == "dev" else (chosen.test, control.test)
    if own is None or other is None or other <= own:
        return
    kind = "ridge" if run.records.data.task_type == "regression" else "logistic"
    on_test = "" if control.test is None else f", {_score(control.test)} on test"
    echo(
        folded(
            f"TF-IDF with {kind} regression on the same rows: {_score(control.dev)} on dev"
            f"{on_test}, ahead of this model on {part}."
        )
    )


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
