"""Efficacy: AANG against fine-tuning and the baselines on ACL-ARC and SciERC, over seeds.

    python -m benchmarks.efficacy DATA MODEL OUT --minutes 9

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``, and for the in-domain text ``s2orc-domain``. MODEL is an encoder's folder. The
script runs ``aang compare``: it stops after the given minutes, and the next call continues, even if
OUT has moved to another machine, with or without a GPU. ``--rows`` takes that many training
examples of each task, always the same ones, because auxiliary objectives are for tasks with few
labels.
"""

import random
from pathlib import Path
from typing import Any

import click
import yaml
from aang_plugin_compare.run_folders import make_root

from aang_core.cli import main as aang

TASKS = ("acl-arc", "scierc")
METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task"},
    "tapt": {"recipe": "tapt"},
    "static-td": {"recipe": "static-td"},
    "bert-style": {"recipe": "bert-style"},
    "factored-td": {"space": "td", "weighter": "factored"},
    "factored-td+ed": {
        "space": "td+ed",
        "weighter": "factored",
        "set": {"factored": {"n": 6}},
    },
}
SIZE = {
    "steps": 200,
    "eval_every": 20,
    "patience": 100,
    "batch_size": 16,
    "dev_batch_size": 16,
    "aux_batch_size": 16,
    "max_length": 64,
    "precision": "bf16",
}
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


def training_file(data: Path, task: str, rows: int | None, out: Path) -> Path:
    """The training file of ``task``, or a file in ``out`` with ``rows`` lines drawn from it."""
    whole = data / task / "train.jsonl"
    if rows is None:
        return whole
    lines = whole.read_text(encoding="utf-8").splitlines()
    drawn = sorted(random.Random(0).sample(range(len(lines)), min(rows, len(lines))))
    part = out / "data" / f"{task}-{rows}.jsonl"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text("".join(lines[i] + "\n" for i in drawn), encoding="utf-8")
    return part


def comparison(
    data: Path, model: Path, seeds: int, over: dict[str, Any], train: dict[str, Path]
) -> dict[str, Any]:
    """The comparison file as a mapping.

    The argument ``over`` has options for all runs and, under the name of a task, options for its
    runs only; ``train`` names the training file of each task.
    """
    tasks = {
        name: {
            **{part: str(data / name / f"{part}.jsonl") for part in ("dev", "test")},
            "train": str(train[name]),
            "domain": [str(data / "s2orc-domain" / f"{name}.1x.txt")],
            **over.get(name, {}),
        }
        for name in TASKS
    }
    return {
        "tasks": tasks,
        "methods": METHODS,
        "seeds": list(range(seeds)),
        "baseline": "single-task",
        "options": {
            **SIZE,
            "model": str(model),
            **{name: value for name, value in over.items() if name not in TASKS},
        },
    }


@click.command()
@click.argument("data", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seeds", default=3, show_default=True)
@click.option("--rows", type=click.IntRange(1), help="training examples a task; default all")
@click.option("--jobs", default=1, show_default=True, help="runs at once")
@click.option("--minutes", default=9.0, show_default=True, help="stop after that time")
@click.option("--option", "options", multiple=True, help="[TASK.]NAME=VALUE of aang train")
def main(
    data: Path,
    model: Path,
    out: Path,
    seeds: int,
    rows: int | None,
    jobs: int,
    minutes: float,
    options: tuple[str, ...],
) -> None:
    """Train the missing runs and print the table of finished ones."""
    over: dict[str, Any] = {}
    for option in options:
        name, value = option.split("=", 1)
        task, _, of_task = name.rpartition(".")
        (over.setdefault(task, {}) if task else over)[of_task] = value
    make_root(out)
    train = {task: training_file(data, task, rows, out) for task in TASKS}
    spec = out / "comparison.yaml"
    spec.write_text(yaml.safe_dump(comparison(data, model, seeds, over, train)), encoding="utf-8")
    how = f"--jobs {jobs} --minutes {minutes} --format markdown"
    aang(["compare", str(spec), "--out", str(out), *how.split()])


if __name__ == "__main__":
    main()
