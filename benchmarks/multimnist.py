"""MultiMNIST under the weighters of αVIL's Table 1 and others, over seeds and targets; resumable.

    python -m benchmarks.multimnist run FOLDER RESULTS.jsonl --epochs 25 --seeds 5
    python -m benchmarks.multimnist table RESULTS.jsonl
    python -m benchmarks.multimnist curves RESULTS.jsonl FIGURE.png

FOLDER holds MNIST's files, or those of its test set alone. Every cell (weighter, target, seed) is
one line of RESULTS.jsonl; existing cells are not run again. A file has cells of one number of
epochs, and should have those of one folder.
"""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import torch

from examples.multimnist import LONG_ROUNDS, TASKS, train

WEIGHTERS = (
    *("single-task", "multitask", "diw", "alpha-vil", "meta-tartan"),
    *("pcgrad", "cagrad", "uncertainty", "gradnorm", "dwa", "forkmerge", "tapweight"),
)
EPOCHS = 25
FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def main() -> None:
    """MultiMNIST: run the cells, show the table, draw the curves."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("results", type=FILE)
@click.option("--epochs", default=EPOCHS, show_default=True)
@click.option("--seeds", default=5, show_default=True)
@click.option("--weighter", "weighters", multiple=True, default=WEIGHTERS, show_default=True)
@click.option("--threads", default=1, show_default=True)
def run(
    folder: Path, results: Path, epochs: int, seeds: int, weighters: Sequence[str], threads: int
) -> None:
    """Train every cell that is missing in RESULTS."""
    cells = _read(results)
    # The oldest cells do not record it.
    if other := {cell.get("epochs", EPOCHS) for cell in cells} - {epochs}:
        raise click.ClickException(
            f"{results} has cells of {min(other)} epochs, not {epochs}; give another file for these"
        )
    torch.set_num_threads(threads)
    done = {(cell["weighter"], cell["target"], cell["seed"]) for cell in cells}
    for seed in range(seeds):
        for weighter in weighters:
            for target in TASKS:
                if (weighter, target, seed) in done:
                    continue
                start = time.monotonic()
                result, dev, test = train(folder, weighter, target, seed=seed, epochs=epochs)
                cell = {
                    "weighter": weighter,
                    "target": target,
                    "seed": seed,
                    "epochs": epochs,
                    "dev": dev,
                    "test": test,
                    "best_step": result.best_step,
                    "steps": result.steps,
                    "seconds": time.monotonic() - start,
                    "history": [_curve(record) for record in result.history[:: _stride(weighter)]],
                }
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
                click.echo(f"{weighter} {target} seed {seed}: dev {dev:.4f}, test {test:.4f}")


def _stride(weighter: str) -> int:
    """Keep one of this many rounds: some weighters' rounds are epochs or longer, others' steps."""
    return 1 if weighter in LONG_ROUNDS else 10


def _curve(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("step", "end_task_weight", "weights", "alpha")
    return {name: record[name] for name in kept if name in record}


@main.command()
@click.argument("results", type=FILE)
def table(results: Path) -> None:
    """Mean and standard deviation of the test accuracy over seeds, in Markdown."""
    cells = _read(results)
    click.echo("| weighter | seeds | " + " | ".join(TASKS) + " |")
    click.echo("|---|---|---|---|")
    for weighter in dict.fromkeys(cell["weighter"] for cell in cells):
        columns = []
        for target in TASKS:
            scores = [
                100 * cell["test"]
                for cell in cells
                if (cell["weighter"], cell["target"]) == (weighter, target)
            ]
            spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            columns.append(f"{statistics.mean(scores):.2f}{spread}" if scores else "–")
        seeds = {cell["seed"] for cell in cells if cell["weighter"] == weighter}
        click.echo(f"| `{weighter}` | {len(seeds)} | " + " | ".join(columns) + " |")


@main.command()
@click.argument("results", type=FILE)
@click.argument("figure", type=FILE)
def curves(results: Path, figure: Path) -> None:
    """α and the normalised weights of αVIL over epochs, mean of all seeds, as in its Figure 3."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    cells = [cell for cell in _read(results) if cell["weighter"] == "alpha-vil"]
    for target in TASKS:
        if not any(cell["target"] == target for cell in cells):
            raise click.ClickException(
                f"{results} has no cell of alpha-vil with the target {target}; train it with "
                "`python -m benchmarks.multimnist run`"
            )
    drawing, axes = pyplot.subplots(2, 2, figsize=(9, 5.5), sharex=True, sharey="row")
    for column, target in enumerate(TASKS):
        histories = [cell["history"] for cell in cells if cell["target"] == target]
        epochs = range(1, 1 + min(len(history) for history in histories))
        (helper,) = (name for name in TASKS if name != target)
        for name, style, label in ((target, "-", "target"), (helper, "--", "other digit")):
            for row, reading in enumerate((_alpha, _weight)):
                rounds = [[history[epoch - 1] for history in histories] for epoch in epochs]
                means = [
                    statistics.mean(reading(record, name, target) for record in records)
                    for records in rounds
                ]
                axes[row, column].plot(epochs, means, style, label=label)
        axes[0, column].set_title(f"target {target}")
        axes[1, column].set_xlabel("epoch")
    axes[0, 0].set_ylabel("α")
    axes[1, 0].set_ylabel("weight")
    axes[0, 0].legend()
    drawing.tight_layout()
    figure.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(figure, dpi=110)


def _alpha(record: Mapping[str, Any], name: str, target: str) -> float:
    return float(record["alpha"][name])


def _weight(record: Mapping[str, Any], name: str, target: str) -> float:
    value = record["end_task_weight"] if name == target else record["weights"][name]
    return float(value)


def _read(results: Path) -> list[dict[str, Any]]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
