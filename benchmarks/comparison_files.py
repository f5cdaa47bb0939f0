"""Comparison files for ``aang compare``: ACL-ARC and SciERC with few labels, and the demo."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

PARTS = ("train", "dev", "test")

OPTIONS: dict[str, Any] = {
    "steps": 200,
    "eval_every": 25,
    "lr": 3e-4,
    "head_lr": 3e-3,
    "max_length": 64,
    "precision": "bf16",
    # The recipe contrast would add one to MiniLM.
    "mean_layer": False,
}
"""Options of all runs, unless a task has its own."""

DEMO: dict[str, Any] = {"model": None, "mean_layer": None, "max_length": 128, "steps": 300}
"""The built-in task with its own small encoder."""

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


def writing_command(
    methods: Mapping[str, Mapping[str, Any]],
    *,
    rows: int,
    seeds: Mapping[str, int],
    unlabelled_for: Collection[str] = (),
) -> click.Command:
    """The command that writes the comparison file of each task.

    Args:
        methods: options of ``aang train`` by method; ``single-task`` is the baseline.
        rows: training rows of a draw of ACL-ARC and SciERC, unless the user gives another number.
        seeds: draws of each task, with the same exception.
        unlabelled_for: the methods that read what a draw leaves out, without its labels.
    """
    default = ", ".join(f"{count} of {task}" for task, count in seeds.items())

    @click.command(help="Write the comparison files into OUT.")
    @click.argument("data", type=FOLDER)
    @click.argument("model", type=FOLDER)
    @click.argument("out", type=click.Path(path_type=Path))
    @click.option("--seeds", "count", type=click.IntRange(min=1), help=f"draws; default: {default}")
    @click.option("--rows", default=rows, show_default=True, help="training rows of a draw")
    @click.option("--option", "options", multiple=True, help="NAME=VALUE for all runs")
    @click.option("--leave-out", multiple=True, type=click.Choice(list(methods)), help="a method")
    def main(
        data: Path,
        model: Path,
        out: Path,
        count: int | None,
        rows: int,
        options: tuple[str, ...],
        leave_out: tuple[str, ...],
    ) -> None:
        over = {name: yaml.safe_load(value) for name, value in (o.split("=", 1) for o in options)}
        kept = {name: dict(method) for name, method in methods.items() if name not in leave_out}
        out.mkdir(parents=True, exist_ok=True)
        # Text that no method reads is refused.
        rest = {"unlabelled": "rest"} if kept.keys() & set(unlabelled_for) else {}
        for name, task in _tasks(data, {"train_rows": rows, **rest}).items():
            content = {
                # A task's own options take precedence over the common ones.
                "tasks": {name: {n: value for n, value in task.items() if n not in over}},
                "methods": kept,
                "seeds": list(range(seeds[name] if count is None else count)),
                "baseline": "single-task",
                "options": {**OPTIONS, "model": str(model), **over},
            }
            path = out / f"{name}.yaml"
            path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            click.echo(f"aang compare {path} --out {out / name} --jobs 2 --difference")

    return main


def _tasks(data: Path, drawn: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each task's own options of ``aang train``."""
    files = {
        name: {part: str(data / name / f"{part}.jsonl") for part in PARTS}
        for name in ("scierc", "acl-arc")
    }
    return {**{name: {**task, **drawn} for name, task in files.items()}, "demo": DEMO}
