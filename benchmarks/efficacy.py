"""Is AANG better than fine-tuning and the baselines? ACL-ARC and SciERC, six methods, seeds.

    python -m benchmarks.efficacy DATA MODEL OUT --minutes 9

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``, and for the in-domain text ``s2orc-domain``. MODEL is an encoder's folder. It is one
``aang compare``: stopped after the minutes given, it goes on with the next call, wherever OUT is
then, on a GPU or without one.
"""

from pathlib import Path
from typing import Any

import click

from aang_core import load_plugins
from aang_core.compare.runner import Ended, Runner, make_root
from aang_core.compare.spec import plan
from aang_core.compare.tables import FORMATS, outcome, table
from aang_core.yaml_source import Source

TASKS = ("acl-arc", "scierc")
METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task"},
    "tapt": {"recipe": "tapt"},
    "static-td": {"recipe": "static-td", "set": {"static": {"n": 3}}},
    "bert-style": {"recipe": "bert-style"},
    "factored-td": {"space": "td", "weighter": "factored"},
    "factored-td+ed": {
        "space": "td+ed",
        "weighter": "factored",
        "set": {"factored": {"n": 6}},
    },
}
SIZE = {
    "steps": 400,
    "eval_every": 40,
    "patience": 100,
    "batch_size": 16,
    "dev_batch_size": 16,
    "aux_batch_size": 16,
    "max_length": 64,
    "precision": "bf16",
}
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


def comparison(data: Path, model: Path, seeds: int, over: dict[str, Any]) -> dict[str, Any]:
    """The comparison file as a mapping."""
    tasks = {
        name: {
            **{part: str(data / name / f"{part}.jsonl") for part in ("train", "dev", "test")},
            "domain": [str(data / "s2orc-domain" / f"{name}.1x.txt")],
        }
        for name in TASKS
    }
    return {
        "tasks": tasks,
        "methods": METHODS,
        "seeds": list(range(seeds)),
        "baseline": "single-task",
        "options": {**SIZE, "model": str(model), **over},
    }


@click.command()
@click.argument("data", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seeds", default=3, show_default=True)
@click.option("--jobs", default=1, show_default=True, help="runs at once")
@click.option("--minutes", default=9.0, show_default=True, help="stop after that time")
@click.option("--option", "options", multiple=True, help="NAME=VALUE of aang train, for all runs")
def main(
    data: Path,
    model: Path,
    out: Path,
    seeds: int,
    jobs: int,
    minutes: float,
    options: tuple[str, ...],
) -> None:
    """Run what is left, and print the table of what there is."""
    over = dict(option.split("=", 1) for option in options)
    content = comparison(data, model, seeds, over)
    planned = plan(content, Source("efficacy"), load_plugins().registry)
    make_root(out)

    def tell(ended: Ended) -> None:
        click.echo(f"{ended.cell.folder}: {ended.error or ended.state}", err=True)

    Runner(out, jobs, tell).run(planned.cells, seconds=60 * minutes)
    entries = outcome(planned, out)
    for form, ending in zip(FORMATS, ("txt", "md", "tex", "json"), strict=True):
        (out / f"table.{ending}").write_text(
            table(entries, form, planned.baseline), encoding="utf-8"
        )
    click.echo(table(entries, "markdown", planned.baseline), nl=False)


if __name__ == "__main__":
    main()
