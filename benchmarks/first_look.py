"""A first comparison with few labels: contrast, td and their controls on three tasks, five draws.

    python -m benchmarks.first_look DATA MODEL OUT
    aang compare OUT/scierc.yaml --out OUT/scierc --jobs 2 --difference

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``; MODEL is an encoder's folder. The script writes a comparison file for each task and
prints the commands. ``aang compare`` continues where it was stopped; with ``--jobs 2`` and
``OMP_NUM_THREADS=1`` two runs share two cores. Each seed draws its own 500 training rows of ACL-ARC
and SciERC; the demo has 200 and trains on all of them.

Methods are matched by rows per step: 64 rows go through the body in a step of ``single-task``,
``contrast``, ``contrast-other-rows`` and ``masked-lm``. ``factored-td`` takes 64, and 96 in every
fourth step, which measures; ``factored-td+c`` takes 80, and 112 in every fourth step.
``single-task-96`` is a control with more than that.
"""

from pathlib import Path
from typing import Any

import click
import yaml

PARTS = ("train", "dev", "test")
CONTRAST_OWN = "end-task-rows/no-op/bidirectional/supervised-contrast"
CONTRAST_OTHER = "task/no-op/bidirectional/supervised-contrast"
MASKED_LM = "task/bert-op/bidirectional/denoise"
HALF = {"static": {"end_task_weight": 0.5}}
THIRDS = {"batch_size": 32, "dev_batch_size": 32, "aux_batch_size": 32}

METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task", "batch_size": 64},
    "single-task-32": {"weighter": "single-task", "batch_size": 32},
    "single-task-96": {"weighter": "single-task", "batch_size": 96},
    "contrast": {"recipe": "contrast", "batch_size": 64},
    "contrast-other-rows": {
        "weighter": "static",
        "space": CONTRAST_OTHER,
        "batch_size": 32,
        "aux_batch_size": 32,
        "set": HALF,
    },
    "contrast-two-views": {
        "recipe": "contrast",
        "batch_size": 32,
        "set": {"supervised-contrast": {"views": 2}},
    },
    "factored-td": {"weighter": "factored", "space": "td", "meta_every": 4, **THIRDS},
    "factored-td+c": {
        "weighter": "factored",
        "space": "td+c",
        "batch_size": 64,
        "dev_batch_size": 32,
        "aux_batch_size": 16,
        "meta_every": 4,
        "set": {"factored": {"n": 1}},
    },
    "bandit-td+c": {"weighter": "factored-bandit", "space": "td+c", **THIRDS},
    "masked-lm": {
        "weighter": "static",
        "space": MASKED_LM,
        "batch_size": 32,
        "aux_batch_size": 32,
        "set": HALF,
    },
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


def comparisons(data: Path, model: Path, seeds: int, rows: int) -> dict[str, dict[str, Any]]:
    """The comparison file of each task, by the task's name."""
    tasks: dict[str, dict[str, Any]] = {
        name: {**{part: str(data / name / f"{part}.jsonl") for part in PARTS}, "train_rows": rows}
        for name in ("scierc", "acl-arc")
    }
    return {
        name: {
            "tasks": {name: task},
            "methods": METHODS,
            "seeds": list(range(seeds)),
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
@click.option("--seeds", default=5, show_default=True, help="draws")
@click.option("--rows", default=500, show_default=True, help="training rows of a draw")
@click.option("--option", "options", multiple=True, help="NAME=VALUE of aang train, for all runs")
@click.option("--leave-out", multiple=True, type=click.Choice(list(METHODS)), help="a method")
def main(
    data: Path,
    model: Path,
    out: Path,
    seeds: int,
    rows: int,
    options: tuple[str, ...],
    leave_out: tuple[str, ...],
) -> None:
    """Write the comparison files into OUT."""
    over = {name: yaml.safe_load(value) for name, value in (o.split("=", 1) for o in options)}
    out.mkdir(parents=True, exist_ok=True)
    for name, content in comparisons(data, model, seeds, rows).items():
        content["options"] |= over
        content["methods"] = {n: m for n, m in METHODS.items() if n not in leave_out}
        path = out / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        click.echo(f"aang compare {path} --out {out / name} --jobs 2 --difference")


if __name__ == "__main__":
    main()
