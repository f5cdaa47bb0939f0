"""``aang compare``: methods × tasks × seeds, and a table of the results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from aang_core import ConfigError, Plugins, Registry
from aang_core.cli import echo, note, plugin_options
from aang_plugin_compare.choose_launcher import chosen_launcher, launcher_options
from aang_plugin_compare.launcher import Launcher

if TYPE_CHECKING:
    from aang_plugin_compare.cells import Comparison
    from aang_plugin_compare.runner import Ended


@click.command(short_help="Compare methods over tasks and seeds; resumable.")
@click.option("--method", "methods", multiple=True, help="a recipe or weighter; can be repeated")
@click.option("--seeds", type=click.IntRange(min=1, max=10_000), help="number of seeds, from 0 on")
@click.option("--baseline", help="method that the others are tested against")
@click.option(
    "--grid", help="grid of hyper-parameters to choose from on dev, by the name a plug-in gives it"
)
@click.option("--out", type=click.Path(path_type=Path), help="folder of the comparison")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="runs at once; by default 1, and on a cluster as many as it has room for",
)
@launcher_options
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "markdown", "latex", "json"]),
    default="text",
    show_default=True,
    help="format of the printed table; all four are written",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="stop after that time; the next call goes on from there",
)
@click.option(
    "--trust-remote-code",
    is_flag=True,
    help="run the Python code that comes with the model, for models that have some",
)
@click.option(
    "--train-rows",
    type=click.IntRange(min=1),
    help="training rows that each seed draws, the same ones for every method",
)
@click.option(
    "--quick-controls/--no-quick-controls",
    "quick",
    default=True,
    show_default=True,
    help="TF-IDF and the frozen encoder, each with logistic regression, in front of the table",
)
@click.option("--difference", is_flag=True, help="a column of differences to the baseline")
@click.option("--table-only", is_flag=True, help="train nothing; make the table of finished runs")
@click.option("--quiet", is_flag=True, help="print only the table")
@click.argument(
    "arguments", metavar="SPEC.yaml | -- [TRAIN OPTIONS]", nargs=-1, type=click.UNPROCESSED
)
@click.pass_obj
def compare(
    plugins: Plugins,
    /,
    methods: tuple[str, ...],
    seeds: int | None,
    baseline: str | None,
    grid: str | None,
    out: Path | None,
    jobs: int | None,
    engine: str,
    address: str | None,
    cpus_per_run: int | None,
    gpus_per_run: float | None,
    kind: str,
    minutes: float | None,
    trust_remote_code: bool,
    train_rows: int | None,
    quick: bool,
    difference: bool,
    table_only: bool,
    quiet: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run every method on every task with every seed, and compare their scores.

    SPEC.yaml names tasks, methods and seeds. Finished runs are kept, interrupted ones are resumed,
    and failed ones are reported and do not stop the others. Without a file, --method names what to
    compare, and the options of aang train after -- name the task.
    """
    # Imported here, so that --help need not wait for it.
    from aang_plugin_compare.curves import curves
    from aang_plugin_compare.left_out import left_out
    from aang_plugin_compare.planning import read_comparison
    from aang_plugin_compare.run_folders import make_root
    from aang_plugin_compare.tables import outcome, table
    from aang_plugin_compare.written import write_outcome

    spec = Path(arguments[0]) if arguments and arguments[0].endswith((".yaml", ".yml")) else None
    over: _Over = {"seeds": seeds, "baseline": baseline, "grid": grid, "train_rows": train_rows}
    if spec is not None:
        if methods or len(arguments) > 1:
            raise ConfigError(f"{spec}: a file names its methods and options; leave others out")
        comparison = read_comparison(spec, plugins.registry, **over)
    else:
        from aang_plugin_compare.short_form import short_form

        comparison = short_form(plugins.registry, methods, arguments, **over)
    root = out or (spec.with_suffix("") if spec is not None else Path("comparison"))
    failed = []
    if table_only:
        make_root(root)
    else:
        with chosen_launcher(engine, root, jobs, address, cpus_per_run, gpus_per_run) as launcher:
            ended = _run(
                comparison,
                plugins.registry,
                root,
                launcher,
                seconds=None if minutes is None else 60 * minutes,
                trust_remote_code=trust_remote_code,
                quick=quick,
                quiet=quiet,
            )
        failed = [e for e in ended if e.error]
        if len(ended) < len(comparison.cells):
            left = len(comparison.cells) - len(ended)
            note(f"{left} runs are left; the same command goes on")
    without = left_out(comparison, root, plugins.registry)
    for reason in without.values():
        note(f"left out of the table: {reason}")
    comparison = replace(comparison, left_out=frozenset(without))
    entries = outcome(comparison, root, quick=quick)
    against = comparison.baseline
    if against and not any(e.method == against and e.scores for e in entries):
        note(f"the baseline {against} has no finished run, so nothing is tested against it")
    write_outcome(root, entries, curves(comparison, root), against, difference=difference)
    echo(table(entries, kind, against, difference=difference), nl=False)
    if failed:
        raise ConfigError(f"{len(failed)} of {len(comparison.cells)} runs failed; see above")


class _Over(TypedDict):
    """Options of the command line that replace those of a comparison file."""

    seeds: int | None
    baseline: str | None
    grid: str | None
    train_rows: int | None


def _run(
    comparison: "Comparison",
    registry: Registry,
    root: Path,
    launcher: Launcher,
    *,
    seconds: float | None,
    trust_remote_code: bool,
    quick: bool,
    quiet: bool,
) -> "Sequence[Ended]":
    """Train the runs that have not finished and print how each ended; exit on an interrupt."""
    from aang_plugin_compare.resumable import resumable
    from aang_plugin_compare.run_folders import make_root
    from aang_plugin_compare.runner import Runner
    from aang_plugin_compare.watching import watching

    def tell(ended: "Ended") -> None:
        watched.ended(ended.cell)
        if not quiet or ended.error:
            done = "kept" if ended.state == "finished" else ended.error or "done"
            watched.say(f"{ended.cell.folder.relative_to('runs')}: {done}")

    def tell_control(line: str, failed: bool) -> None:
        if not quiet or failed:
            watched.say(line)

    def controls() -> None:
        from aang_plugin_compare.quick_controls import QuickControls

        made = QuickControls(root, tell_control, trust_remote_code)
        made.run(comparison, seconds=seconds)

    before = plugin_options(click.get_current_context())
    after = ["--trust-remote-code"] if trust_remote_code else []
    with resumable(), watching(root, len(comparison.cells), quiet=quiet) as watched:
        make_root(root)
        runner = Runner(
            root, launcher, registry, tell, began=watched.began, before=before, after=after
        )
        ended = runner.run(comparison.cells, seconds=seconds, first=controls if quick else None)
    return ended
