"""``aang compare``: methods × tasks × seeds, and a table that says what came of it."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from aang_core.cli.app import given_arguments
from aang_core.cli.loaded import plugin_options
from aang_core.cli.output import echo, note
from aang_core.compare.launcher import Launcher
from aang_core.compare.local import LocalLauncher
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from aang_core.plugins.registry import Registry


@click.command(short_help="Compare methods over tasks and seeds; resumable.")
@click.option("--method", "methods", multiple=True, help="a recipe or weighter; may be given again")
@click.option("--seeds", type=click.IntRange(min=1, max=10_000), help="number of seeds, from 0 on")
@click.option("--baseline", help="method that the others are tested against")
@click.option("--grid", help="grid of hyper-parameters to choose from on dev: paper-td")
@click.option("--out", type=click.Path(path_type=Path), help="folder of the comparison")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="runs at once; by default 1, and on a cluster as many as it has room for",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="where runs run: as processes of this machine, or on a Ray cluster",
)
@click.option("--address", metavar="HOST:PORT", help="of the Ray cluster; auto for this machine's")
@click.option("--cpus-per-run", type=click.IntRange(min=1), help="on Ray, by default 1")
@click.option("--gpus-per-run", type=click.FloatRange(min=0), help="on Ray, by default 0")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "markdown", "latex", "json"]),
    default="text",
    show_default=True,
    help="of the table that is printed; all four are written",
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
@click.option("--table-only", is_flag=True, help="run nothing; the table of what is there")
@click.option("--quiet", is_flag=True, help="no line for each run")
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

    SPEC.yaml names tasks, methods and seeds. Runs that have finished are kept, interrupted ones are
    resumed, failed ones are told and do not stop the others. Without a file, --method names what to
    compare and what follows after -- are options of aang train that name the task.
    """
    from aang_core.compare.curves import as_csv, as_json, curves
    from aang_core.compare.runner import Ended, Runner, make_root
    from aang_core.compare.spec import read_comparison
    from aang_core.compare.tables import FORMATS, outcome, table
    from aang_core.storage.durable import writing
    from aang_core.training.interruption import Interrupted, interruptible

    spec = Path(arguments[0]) if arguments and arguments[0].endswith((".yaml", ".yml")) else None
    registry = plugins.registry
    if spec is not None:
        if methods or len(arguments) > 1:
            raise ConfigError(f"{spec}: a file names its methods and options; leave others out")
        comparison = read_comparison(
            spec, registry, seeds=seeds, baseline=baseline, grid=grid, train_rows=train_rows
        )
    else:
        comparison = _short_form(registry, methods, seeds, baseline, grid, train_rows, arguments)
    root = out or (spec.with_suffix("") if spec is not None else Path("comparison"))

    def tell(ended: Ended) -> None:
        if not quiet or ended.error:
            done = "kept" if ended.state == "finished" else ended.error or "done"
            echo(f"{ended.cell.folder.relative_to('runs')}: {done}", err=True)

    def tell_control(line: str, failed: bool) -> None:
        if not quiet or failed:
            echo(line, err=True)

    failed = []
    if not table_only:
        seconds = None if minutes is None else 60 * minutes
        try:
            with (
                _launcher(engine, root, jobs, address, cpus_per_run, gpus_per_run) as launcher,
                interruptible(),
            ):
                make_root(root)
                before = plugin_options(click.get_current_context())
                after = ["--trust-remote-code"] if trust_remote_code else []
                runner = Runner(root, launcher, tell, before=before, after=after)

                def controls() -> None:
                    from aang_core.compare.quick_controls import QuickControls

                    made = QuickControls(root, tell_control, trust_remote_code)
                    made.run(comparison, seconds=seconds)

                first = controls if quick else None
                ended = runner.run(comparison.cells, seconds=seconds, first=first)
        except Interrupted as stopped:
            again = shlex.join(["aang", *given_arguments(click.get_current_context())])
            echo(f"{stopped}; to go on:\n    {again}", err=True)
            raise SystemExit(stopped.status) from None
        failed = [e for e in ended if e.error]
        if len(ended) < len(comparison.cells):
            left = len(comparison.cells) - len(ended)
            note(f"{left} runs are left; the same command goes on")
    else:
        make_root(root)
    entries = outcome(comparison, root, quick=quick)
    if comparison.baseline and not any(e.method == comparison.baseline for e in entries):
        note(
            f"the baseline {comparison.baseline} has no finished run, so nothing is tested against "
            "it"
        )
    for form, ending in zip(FORMATS, ("txt", "md", "tex", "json"), strict=True):
        text = table(entries, form, comparison.baseline, difference=difference)
        with writing(root / f"table.{ending}"):
            (root / f"table.{ending}").write_text(text, encoding="utf-8")
    points = curves(comparison, root)
    with writing(root / "curves.csv"):
        (root / "curves.csv").write_text(as_csv(points), encoding="utf-8")
        (root / "curves.json").write_text(as_json(points), encoding="utf-8")
    echo(table(entries, kind, comparison.baseline, difference=difference), nl=False)
    if failed:
        raise ConfigError(f"{len(failed)} of {len(comparison.cells)} runs failed; see above")


@contextmanager
def _launcher(
    engine: str,
    root: Path,
    jobs: int | None,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
) -> Iterator[Launcher]:
    """Where the runs run; a cluster is connected to meanwhile."""
    if engine == "local":
        of_ray = {"--address": address, "--cpus-per-run": cpus, "--gpus-per-run": gpus}
        if given := [name for name, value in of_ray.items() if value is not None]:
            raise ConfigError(
                f"{given[0]}: is an option of --engine ray; add that, or leave it out"
            )
        yield LocalLauncher(jobs or 1)
        return
    if gpus and gpus > 1 and not gpus.is_integer():
        raise ConfigError(f"--gpus-per-run {gpus:g}: give a whole number, or a part of one GPU")
    from aang_core.compare.ray_engine import RayLauncher, ray_cluster

    def tell(sentence: str) -> None:
        echo(sentence, err=True)

    with ray_cluster(address):
        yield RayLauncher(root, tell, cpus=cpus or 1, gpus=gpus or 0, jobs=jobs)


def _short_form(
    registry: Registry,
    methods: tuple[str, ...],
    seeds: int | None,
    baseline: str | None,
    grid: str | None,
    train_rows: int | None,
    options: tuple[str, ...],
) -> Any:
    """The comparison that the command line alone describes."""
    from aang_core.cli.train import given_options, train
    from aang_core.compare.spec import plan
    from aang_core.storage.yaml_source import Source

    if not methods:
        raise ConfigError("give a comparison file, or methods such as --method single-task")
    repeated = {name for name in methods if methods.count(name) > 1}
    if repeated:
        raise ConfigError(f"--method {repeated.pop()}: is given twice; two methods need two names")
    with train.make_context("train", list(options)) as context:
        task = given_options(
            {name: v for name, v in context.params.items() if name not in _NOT_OPTIONS}
        )
    value = {
        "tasks": {str(task.get("target") or "task"): task},
        "methods": {
            name: {"recipe" if name in registry.recipes else "weighter": name} for name in methods
        },
        "seeds": list(range(seeds or 3)),
        "baseline": baseline,
        "grid": grid or {},
    }
    return plan(value, Source("the command line"), registry, train_rows=train_rows)


_NOT_OPTIONS = {"config_file", "resume", "quiet", "as_json", "seed", "out"}
