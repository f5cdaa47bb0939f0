"""200 labels and the rest of the text without them: AANG, FixMatch, contrast and fine-tuning.

    python -m benchmarks.few_labels DATA MODEL OUT
    aang compare OUT/scierc.yaml --out OUT/scierc --jobs 2 --difference

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``; MODEL is an encoder's folder. The script writes a comparison file for each task and
prints the commands. ``aang compare`` continues where it was stopped; with ``--jobs 2`` and
``OMP_NUM_THREADS=1`` two runs share two cores. On ACL-ARC and SciERC each seed draws its own
training rows, and those that it leaves out are the text without labels. The demo trains on all of
its 200, and the comments of its packages are the text without labels.

Methods are matched by rows per step: 64 rows go through the body in a step of ``single-task``,
``contrast`` and ``fixmatch``, which shows each of its 16 texts clean and corrupted. ``factored``
takes 64, and 96 in every fourth step, which measures.
"""

from pathlib import Path
from typing import Any

import click
import yaml

PARTS = ("train", "dev", "test")
FIXMATCH = "unlabelled/bert-op/bidirectional/pseudo-label"
ROWS = {"batch_size": 32, "dev_batch_size": 32, "aux_batch_size": 32}

METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task", "batch_size": 64},
    "contrast": {"recipe": "contrast", "batch_size": 64},
    "fixmatch": {
        "weighter": "static",
        "space": FIXMATCH,
        "set": {"static": {"end_task_weight": 0.5}},
        **ROWS,
    },
    "factored-td": {"weighter": "factored", "space": "td", "meta_every": 4, **ROWS},
    "factored-td+u": {"weighter": "factored", "space": "td+u", "meta_every": 4, **ROWS},
}

OPTIONS: dict[str, Any] = {
    "steps": 200,
    "eval_every": 25,
    "lr": 3e-4,
    "head_lr": 3e-3,
    "max_length": 64,
    "precision": "bf16",
}

DEMO: dict[str, Any] = {"model": None, "max_length": 128, "steps": 300}
"""The built-in task with its own small encoder."""

SEEDS = {"demo": 5, "acl-arc": 3, "scierc": 3}
"""Draws of each task."""


def comparisons(data: Path, model: Path, rows: int) -> dict[str, dict[str, Any]]:
    """The comparison file of each task, by the task's name.

    Args:
        data: the folder of the tasks' folders.
        model: the encoder of all tasks but the demo.
        rows: training rows of a draw.
    """
    drawn = {"train_rows": rows, "unlabelled": "rest"}
    tasks: dict[str, dict[str, Any]] = {
        name: {**{part: str(data / name / f"{part}.jsonl") for part in PARTS}, **drawn}
        for name in ("scierc", "acl-arc")
    }
    return {
        name: {
            "tasks": {name: task},
            "methods": METHODS,
            "seeds": list(range(SEEDS[name])),
            "baseline": "single-task",
            "options": {**OPTIONS, "model": str(model)},
        }
        for name, task in {**tasks, "demo": DEMO}.items()
    }


FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command()
@click.argument("data", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(min=1), help="draws; default: 5 on the demo, else 3")
@click.option("--rows", default=200, show_default=True, help="training rows of a draw")
@click.option("--option", "options", multiple=True, help="NAME=VALUE of aang train, for all runs")
@click.option("--leave-out", multiple=True, type=click.Choice(list(METHODS)), help="a method")
def main(
    data: Path,
    model: Path,
    out: Path,
    seeds: int | None,
    rows: int,
    options: tuple[str, ...],
    leave_out: tuple[str, ...],
) -> None:
    """Write the comparison files into OUT."""
    over = {name: yaml.safe_load(value) for name, value in (o.split("=", 1) for o in options)}
    out.mkdir(parents=True, exist_ok=True)
    for name, content in comparisons(data, model, rows).items():
        # A task's own options go before the common ones.
        content["tasks"][name] = {n: v for n, v in content["tasks"][name].items() if n not in over}
        content["options"] |= over
        content["methods"] = {n: m for n, m in METHODS.items() if n not in leave_out}
        if seeds is not None:
            content["seeds"] = list(range(seeds))
        path = out / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        click.echo(f"aang compare {path} --out {out / name} --jobs 2 --difference")


if __name__ == "__main__":
    main()
