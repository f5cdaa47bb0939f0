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
    model = str(run.folder / outcome.model)
    echo(f"Everything about this run is in {run.folder}. Its model is an ordinary transformers")
    echo("folder, which needs no AANG:")
    echo("    from transformers import pipeline")
    # A pipeline that labels tokens always cuts long texts.
    cut = "" if outcome.pipeline == "token-classification" else ", truncation=True"
    echo(f"    classify = pipeline({outcome.pipeline!r}, model={model!r}{cut})")


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
