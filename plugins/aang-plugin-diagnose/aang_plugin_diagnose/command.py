"""``aang diagnose``: how close the objectives of a space are to the end task."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from aang.cli.schema_options import TrainingCommand, given_options, options_of
from aang.config import TrainConfig, read_config_file, resolve_config

from aang_core.cli.app import output_of_plugins
from aang_core.cli.output import echo, note, print_table
from aang_core.cli.rare_options import RareOption
from aang_core.errors import ConfigError, UnknownNameError
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang_plugin_diagnose.objectives import Diagnosis
    from aang_plugin_diagnose.theorem import Theorem

_SHOWN = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)

# Options of a complete training, and of what comes after it.
_UNUSED = (
    *("recipe", "eval_every", "patience", "metric", "dev_head", "gradients", "meta_every"),
    *("weights_every", "draws_per_step", "final_fine_tuning", "checkpoint_every"),
    *("test", "test_score", "out", "compile", "on_nan"),
    *("aux_batch_size", "head_lr", "weight_decay", "max_grad_norm"),
    *("clip_apart", "task_clip", "dev_average", "optimizer", "momentum"),
    *("stop_after", "train_on_dev", "test_predictions"),
)


class _Diagnosis(TrainingCommand):
    reports = False


@click.command(
    cls=_Diagnosis,
    short_help="Measure how near each objective is to the end task, without training.",
)
@click.argument(
    "config_file", metavar="[CONFIG.yaml]", required=False, type=click.Path(path_type=Path)
)
@options_of(TrainConfig, skip=_UNUSED)
@click.option(
    "--batches", type=click.IntRange(min=1), help="batches to measure; default: one pass over train"
)
@click.option(
    "--sort",
    cls=RareOption,
    type=click.Choice(["distance", "cosine", "norm"]),
    default="distance",
    help="rank by rising distance, falling cosine or rising norm  [default: distance]",
)
@click.option(
    "--bound",
    is_flag=True,
    help="also compute the bound of Theorem 4.1, for a training with --steps, --lr, --warmup and "
    "--schedule",
)
@click.option("--plot", type=click.Path(path_type=Path), help="write a figure, .html, .png, .svg")
@click.option("--quiet", is_flag=True, help="no progress, no notes")
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON")
@click.pass_obj
def diagnose(
    plugins: Plugins,
    /,
    config_file: Path | None,
    batches: int | None,
    sort: str,
    bound: bool,
    plot: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how near each objective of a space is to the end task, without training.

    For each objective: the cosine of its gradient with the dev gradient, its norm, and the distance
    Δ̂ to the end task's gradient (AANG, section 4), as means and standard deviations over batches.
    """
    # Nothing is scored on test, so it is not read.
    given = {**given_options(options), "test_score": False}
    of_training = {option.name for option in plugins.registry.options if option.reporting}
    from_file = read_config_file(config_file) if config_file else {}
    from_file = {name: value for name, value in from_file.items() if name not in of_training}
    from aang.assembly.around_training import before_training
    from aang.assembly.sources import prepare_sources
    from aang.cli.progress import counting
    from aang.runs.devices import on_usable_cores
    from aang.runs.training import choose_training_device

    from aang_plugin_diagnose.objectives import diagnose as measure

    click.get_current_context().with_resource(on_usable_cores())
    draw = None if plot is None else _prepared_figure(plugins, plot)
    config = resolve_config(from_file, given, plugins.registry)
    before_training(plugins.registry, config)
    with output_of_plugins():
        sources = prepare_sources(config, plugins.registry)
    if not sources.plan.objectives:
        raise ConfigError(
            f"--weighter {config.weighter} trains the end task alone, so there is no objective "
            "to diagnose; leave it out"
        )
    with counting("batches", quiet=quiet) as progress, output_of_plugins():
        found = measure(
            config,
            sources,
            device=choose_training_device(config.device),
            batches=batches,
            bound=bound,
            progress=progress,
            say=(lambda sentence: None) if quiet else note,
        )
    if not quiet:
        for line in sources.report.lines():
            note(line)
    if as_json:
        echo(json.dumps(found.document(), indent=2))
    else:
        _print(found, sort)
    if draw is not None:
        draw(found)
        if not as_json:
            echo(f"The figure is in {plot}.")


def _prepared_figure(plugins: Plugins, path: Path) -> Callable[["Diagnosis"], None]:
    """The plug-in's function that writes the figure.

    Raises:
        ConfigError: No plug-in draws it, or not in a file of that kind.
    """
    try:
        hook = plugins.registry.hooks.find("aang_plot_diagnosis")
    except UnknownNameError as error:
        raise ConfigError(
            f"--plot {path}: the figure is drawn by a plug-in, and {error}"
        ) from error
    draw: Callable[[Diagnosis], None] = hook.call(path=path)
    return draw


def _print(found: Any, sort: str) -> None:
    keys = {
        "distance": lambda o: o.distance.mean,
        "cosine": lambda o: -o.cosine.mean,
        "norm": lambda o: o.norm.mean,
    }
    ranked = sorted(found.objectives, key=keys[sort])
    rows = [
        [str(place), o.name, _pair(o.distance, ".3g"), _pair(o.cosine, ".3f"), _pair(o.norm, ".3g")]
        for place, o in enumerate(ranked, start=1)
    ]
    end = found.end_task
    rows.append(["", "end task", "0", _pair(end.cosine, ".3f"), _pair(end.norm, ".3g")])
    print_table(["", "objective", "distance Δ̂", "cosine", "norm"], rows, lead=2)
    nearest = min(found.objectives, key=keys["distance"])
    farthest = max(found.objectives, key=keys["distance"])
    ratio = found.total_rows / found.end_task_rows
    echo(
        f"\nMeans ± standard deviations over {_counted(found.batches, 'batch', 'batches')}. "
        "What Theorem 4.1 of AANG says about them:"
    )
    farther = (
        f", farthest {farthest.name} (Δ̂ {farthest.distance.mean:.3g})"
        if farthest is not nearest
        else ""
    )
    echo(
        f"P1  A smaller Δ is better. Nearest is {nearest.name} (Δ̂ {nearest.distance.mean:.3g})"
        f"{farther}."
    )
    echo(
        f"P2  More samples are better, at the same γ. N' = {found.total_rows}: "
        f"{found.end_task_rows} of the end task and {found.auxiliary_rows} of "
        f"{_counted(len(found.objectives), 'objective', 'objectives')}, {ratio:.1f} times as many "
        "as the end task alone."
    )
    echo(
        f"    γ = λ_e N' / N_e = {found.gamma:.3g} with the λ_e of {found.end_task_weight:.3g} "
        f"that the weighter starts from; λ_e = {1 / ratio:.3g} would give γ = 1."
    )
    if found.theorem is not None:
        _print_bound(found.theorem)


def _print_bound(theorem: "Theorem") -> None:
    (weight, least), (other, of_equation) = theorem.least(), theorem.least(equation_1=True)
    echo(
        f"Bound  Δ̂ = {theorem.distance:.3g}, L̂ = {theorem.lipschitz:.3g}, β̂_e = "
        f"{theorem.end_task_smoothness:.3g}, β̂_a = {theorem.auxiliary_smoothness:.3g}, r_e = "
        f"{theorem.end_task_share:.3g}; T = {theorem.steps} steps of at most c / t, c = "
        f"{theorem.step_constant:.3g}."
    )
    echo(f"    {'λ_e':>11}" + "".join(f"{w:10g}" for w in _SHOWN))
    for place, name in enumerate(("equation 1", "ρ = 0")):
        values = "".join(f"{theorem.bounds(w)[place]:10.3g}" for w in _SHOWN)
        echo(f"    {name:>11}" + values)
    echo(
        f"    The tighter one is least at λ_e = {weight:g} ({least:.3g}), the first at λ_e = "
        f"{other:g} ({of_equation:.3g}). Neither speaks of the training error, which grows as λ_e "
        "falls (AANG, appendix F.1)."
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _pair(spread: Any, form: str) -> str:
    std = "" if spread.std is None else f" ± {spread.std:{form}}"
    return f"{spread.mean:{form}}{std}"
