"""``aang compare``: methods × tasks × seeds, and a table of the results."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang_core import ConfigError, Plugins
from aang_core.cli import echo, note
from aang_core.storage import locked
from aang_plugin_compare.launcher import chosen_launcher, file_in, options_of_many_runs

if TYPE_CHECKING:
    from aang_plugin_compare.cells import Comparison
    from aang_plugin_compare.runner import Ended, Runs


@click.command(short_help="Compare methods over tasks and seeds; resumable.")
@click.option("--method", "methods", multiple=True, help="a recipe or weighter; can be repeated")
@click.option("--seeds", type=click.IntRange(min=1, max=10_000), help="number of seeds, from 0 on")
@click.option("--baseline", help="method that the others are tested against")
@click.option(
    "--grid", help="grid of hyper-parameters to choose from on dev, by the name a plug-in gives it"
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="runs at once; by default 1, and on a cluster as many as it has room for",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="stop after that time; the next call goes on from there",
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
@options_of_many_runs("SPEC.yaml", "comparison", ["text", "markdown", "latex", "json"])
@click.pass_obj
def compare(
    plugins: Plugins,
    /,
    arguments: tuple[str, ...],
    methods: tuple[str, ...],
    out: Path | None,
    kind: str,
    **options: Any,
) -> None:
    """Run every method on every task with every seed, and compare their scores.

    SPEC.yaml names tasks, methods and seeds. Finished runs are kept, interrupted ones are resumed,
    and failed ones are reported and do not stop the others. Without a file, --method names what to
    compare, and the options of aang train after -- name the task.
    """
    # Imported here, so that --help need not wait for it.
    from aang_plugin_compare.curves import curves
    from aang_plugin_compare.planning import read_comparison, short_form
    from aang_plugin_compare.run_folders import left_out, make_root
    from aang_plugin_compare.runner import Runs
    from aang_plugin_compare.tables import outcome, table, write_outcome

    registry, failed = plugins.registry, 0
    over = {name: options[name] for name in ("seeds", "baseline", "grid", "train_rows")}
    spec = file_in(arguments)
    if spec is None:
        comparison = short_form(registry, methods, arguments, **over)
    elif methods or len(arguments) > 1:
        raise ConfigError(f"{spec}: a file names its methods and options; leave others out")
    else:
        comparison = read_comparison(spec, registry, **over)
    root = out or (spec.with_suffix("") if spec is not None else Path("comparison"))
    if options["table_only"]:
        make_root(root)
    else:
        with chosen_launcher(root, options) as launcher:
            runs = Runs.asked(root, launcher, registry, options["trust_remote_code"])
            failed = _trained(comparison, runs, options)
    without = left_out(comparison, root, registry)
    for reason in without.values():
        note(f"left out of the table: {reason}")
    comparison = replace(comparison, left_out=frozenset(without))
    entries = outcome(comparison, root, quick=options["quick"])
    against = comparison.baseline
    if against and not any(e.method == against and e.scores for e in entries):
        note(f"the baseline {against} has no finished run, so nothing is tested against it")
    difference = options["difference"]
    write_outcome(root, entries, curves(comparison, root), against, difference=difference)
    echo(table(entries, kind, against, difference=difference), nl=False)
    if failed:
        raise ConfigError(f"{failed} of {len(comparison.cells)} runs failed; see above")


def _trained(comparison: "Comparison", runs: "Runs", options: Mapping[str, Any]) -> int:
    """Train the runs that have not finished and print how each ended; exit on an interrupt.

    Returns:
        The number of runs that failed.
    """
    from aang_plugin_compare.run_folders import make_root
    from aang_plugin_compare.runner import Runner, resumable
    from aang_plugin_compare.watching import Watching

    def tell(ended: "Ended") -> None:
        watched.ended(ended.job)
        done = "kept" if ended.state == "finished" else "done"
        tell_control(f"{ended.name}: {ended.error or done}", bool(ended.error))

    def tell_control(line: str, failed: bool) -> None:
        if failed or not options["quiet"]:
            watched.say(line)

    cells, root = comparison.cells, runs.root
    seconds = None if options["minutes"] is None else 60 * options["minutes"]
    watched = Watching(root, len(cells), options["quiet"])
    with resumable(), watched.bars:
        make_root(root)
        with locked(root):
            runner = Runner(runs, tell, watched.began)
            runner.check(cells)
            if options["quick"]:
                from aang_plugin_compare.quick_controls import QuickControls

                controls = QuickControls(root, tell_control, options["trust_remote_code"])
                controls.run(comparison, seconds=seconds)
            ended = runner.run(cells, seconds)
    if len(ended) < len(cells):
        note(f"{len(cells) - len(ended)} runs are left; the same command goes on")
    return sum(bool(e.error) for e in ended)
