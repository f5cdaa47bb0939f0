"""Compute the quick controls of the tables of `benchmarks.does_it_help` anew, and train nothing.

    python -m benchmarks.quick_controls DATA MODEL OUT RESULTS

DATA and MODEL are those of `benchmarks.does_it_help`; RESULTS has ``SETTING/table.json``. The rows
of the quick controls in these tables get new scores, on the same draws; all other rows stay.
Settings with a prepared encoder get TF-IDF alone, which needs no encoder. What is computed is in
``OUT/SETTING/controls``, and a call that was stopped goes on from there.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click
import yaml
from aang.runs import TF_IDF
from aang_plugin_compare.control_results import QUICK_CONTROLS, results_of
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.quick_controls import QuickControls
from aang_plugin_compare.tables import Entry, control_entry, judged

from aang_core.plugins import load_plugins
from benchmarks.comparison_files import FOLDER
from benchmarks.does_it_help import SETTINGS, Part, comparison
from benchmarks.joined_results import Outcome


def with_new(entries: Sequence[Entry], controls: Iterable[Entry]) -> list[Entry]:
    """The rows of a table, those of controls replaced by new ones on as many draws.

    Raises:
        click.ClickException: a control has other draws than before.
    """
    new = {entry.method: entry for entry in controls}
    for entry in entries:
        if entry.method in new and list(new[entry.method].seeds) != list(entry.seeds):
            raise click.ClickException(
                f"{entry.task}/{entry.method}: the table has the draws {entry.seeds} and the new "
                f"result {new[entry.method].seeds}"
            )
    return [
        replace(new[e.method], missing=e.missing) if e.quick and e.method in new else e
        for e in entries
    ]


def compute(name: str, seeds: Sequence[int], data: Path, model: Path, out: Path) -> list[Entry]:
    """The quick controls of a setting, as rows of a table."""
    setting = SETTINGS[name]
    part = Part(0, name, (setting.baseline,), tuple(seeds), new=0, hours=0.0)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "comparison.yaml"
    file.write_text(yaml.safe_dump(comparison(part, data, model, model)), encoding="utf-8")
    plan = read_comparison(file, load_plugins().registry)
    names = (TF_IDF,) if setting.prepared and setting.task != "demo" else QUICK_CONTROLS
    failed = []

    def tell(line: str, is_failure: bool) -> None:
        click.echo(line, err=is_failure)
        failed.extend([line] if is_failure else [])

    QuickControls(out, tell, names=names).run(plan)
    if failed:
        sys.exit(1)
    (task,) = plan.tasks
    return [control_entry(task, r, len(seeds)) for r in results_of(out, task, seeds).values()]


@click.command(help=__doc__)
@click.argument("data", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("results", type=FOLDER)
@click.option("--setting", "only", type=click.Choice(list(SETTINGS)), help="only this setting")
def main(data: Path, model: Path, out: Path, results: Path, only: str | None) -> None:
    """Write the tables with new scores of the quick controls."""
    for name, setting in SETTINGS.items():
        if only not in (None, name) or not (results / name / "table.json").exists():
            continue
        known = Outcome.of(results / name)
        seeds = sorted({seed for entry in known.entries if entry.quick for seed in entry.seeds})
        if not seeds:
            continue
        controls = compute(name, seeds, data, model, out / name)
        entries = judged(with_new(known.entries, controls), setting.baseline)
        Outcome(entries, known.lines).write(results / name, setting.baseline)


if __name__ == "__main__":
    main()
