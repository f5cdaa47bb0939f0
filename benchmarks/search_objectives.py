"""Objectives chosen by outcome, or weighted by gradients, at equal compute.

    python -m benchmarks.search_objectives DATA MODEL OUT --minutes 600

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl`` and ``test.jsonl``; MODEL is
an encoder's folder. For each task and draw of training rows four searches of ``aang best`` train on
the same folds and read test once, at their end:

* ``contrast``: contrast alone;
* ``search-objectives``: contrast, and the set of objectives that a search finds;
* ``factored`` and ``factored-bandit``: AANG's weights over the same space, td+c, for so many steps
  that their folds take the seconds of the search. How many of them are trained is chosen on the
  folds.

Each ends with a line in ``OUT/results.jsonl``, which has the seconds that its trainings really
took. A search that has its line is not repeated, one that was stopped goes on.
"""

import itertools
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.comparison_files import FOLDER

SPACE = "td+c"
TASKS = ("scierc", "acl-arc")
FOLDS = 5
PLUG_IN = Path(__file__).with_name("bandit_candidate.py")


def searches(steps: int, seconds: float, fold_seconds: float) -> Iterator[tuple[str, list[str]]]:
    """Each search by name, with its arguments; the first two determine the time of the others.

    Args:
        steps: of contrast.
        seconds: seconds of all trainings of the search; zero if that has not ended.
        fold_seconds: seconds of a fold of contrast.
    """
    yield "contrast", ["--candidate", "contrast", "--", "--steps", str(steps)]
    found = ["--candidate", "contrast", "--search-objectives", SPACE]
    yield "search-objectives", [*found, "--", "--steps", str(steps)]
    # A step of AANG is about four of plain fine-tuning; the results have what it really took.
    longer = max(1.0, seconds / (FOLDS * fold_seconds * 4 / 1.1)) if seconds else 1.0
    for name in ("factored", "factored-bandit"):
        yield name, ["--candidate", name, "--", "--steps", str(round(steps * longer))]


def draw(data: Path, rows: int, seed: int, to: Path) -> None:
    """Write training rows that are drawn by class."""
    from sklearn.model_selection import train_test_split

    lines = data.read_text(encoding="utf-8").splitlines()
    labels = [json.loads(line)["label"] for line in lines]
    drawn, _ = train_test_split(lines, train_size=rows, random_state=seed, stratify=labels)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join(drawn) + "\n", encoding="utf-8")


def walls(folder: Path) -> dict[str, list[float]]:
    """The seconds of each training of a search by candidate, until the choice is made."""
    file = folder / "clock.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found: dict[str, list[float]] = record.get("runs", {})
    return {name: of for name, of in found.items() if " on " not in name}


def outcome(folder: Path, metric: str) -> dict[str, Any]:
    """The result of a finished search."""
    verdict = json.loads((folder / "best.json").read_text(encoding="utf-8"))
    file = folder / "objectives.json"
    searched = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {
        "chosen": verdict["chosen"],
        "folds": {of["name"]: of["score"] for of in verdict["board"]},
        "test": verdict["parts"]["test"]["scores"][metric],
        "steps": verdict["steps"],
        "seconds": sum(sum(of) for of in walls(folder).values()),
        "objectives": searched.get("best"),
        "times_contrast": searched.get("times_contrast"),
    }


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("data", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--rows", default=500, help="training rows of a draw")
@click.option("--draws", default=3, help="draws of each task")
@click.option("--steps", default=400, help="steps of contrast and of the sets")
@click.option("--minutes", default=600.0, help="stop after so many; the same command goes on")
@click.option("--option", "options", multiple=True, help="an option of aang train for all")
@click.option("--task", "tasks", multiple=True, default=TASKS, type=click.Choice(TASKS))
def main(
    data: Path,
    model: Path,
    out: Path,
    rows: int,
    draws: int,
    steps: int,
    minutes: float,
    options: tuple[str, ...],
    tasks: tuple[str, ...],
) -> None:
    """Search what has no result yet."""
    end = time.monotonic() + 60 * minutes
    results = out / "results.jsonl"
    lines = results.read_text(encoding="utf-8").splitlines() if results.is_file() else []
    known = {tuple(json.loads(line)["run"]) for line in lines}
    # The most decisive searches come first, for every draw.
    for place, number, task in itertools.product(range(4), range(draws), tasks):
        root = out / f"{task}-{rows}-{number}"
        if not (root / "train.jsonl").is_file():
            draw(data / task / "train.jsonl", rows, number, root / "train.jsonl")
        fold = walls(root / "contrast").get("contrast", [1.0])
        seconds = sum(map(sum, walls(root / "search-objectives").values()))
        name, given = list(searches(steps, seconds, sum(fold) / len(fold)))[place]
        if (task, rows, number, name) in known:
            continue
        shared = ["--train", root / "train.jsonl", "--test", data / task / "test.jsonl"]
        shared += ["--model", model, "--out", root / name, "--minutes", 1000]
        command = ["--plugin", PLUG_IN, "best", *shared, *given]
        command += [word for option in options for word in option.split()]
        click.echo(shlex.join(["aang", *map(str, command)]))
        try:
            subprocess.run(
                [sys.executable, "-m", "aang_core", *map(str, command)],
                check=True,
                timeout=max(1.0, end - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            return
        found = {"run": [task, rows, number, name], **outcome(root / name, "macro-f1")}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
