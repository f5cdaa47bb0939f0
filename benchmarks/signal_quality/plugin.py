"""The command ``aang signal-quality``: how reliable the signals of a training are."""

import json
from pathlib import Path
from typing import Any

import click
from aang.cli.schema_options import given_options, options_of
from aang.config import TrainConfig, read_config_file, resolve_config

from aang_core import RegisterCommand, hookimpl
from aang_core.cli.app import output_of_plugins
from aang_core.cli.output import echo, note, print_table
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from benchmarks.signal_quality.figures import Figure, ObjectiveQuality, SignalQuality

# Options for a complete training, and for what comes after it.
_UNUSED = frozenset(
    {
        *("recipe", "eval_every", "patience", "metric", "dev_head", "gradients", "meta_every"),
        *("weights_every", "draws_per_step", "final_fine_tuning", "checkpoint_every", "log"),
        *("test", "test_score", "out", "push_to_hub", "hub_private", "hub_license"),
        *("hub_language", "compile", "on_nan", "stop_after", "train_on_dev", "test_predictions"),
    }
)


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register ``signal-quality``."""
    register("signal-quality", "Measure how well signals stand out from noise.", signal_quality)


@click.command(short_help="Measure how well signals stand out from noise.")
@click.argument(
    "config_file", metavar="[CONFIG.yaml]", required=False, type=click.Path(path_type=Path)
)
@options_of(TrainConfig, skip=_UNUSED)
@click.option(
    "--quality-steps",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="training steps",
)
@click.option(
    "--quality-every",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="steps between measurements",
)
@click.option(
    "--quality-sample",
    type=click.IntRange(min=1),
    help="objectives to measure each time, drawn anew; default: all",
)
@click.option(
    "--scores",
    type=click.Path(path_type=Path),
    help="dev scores of objectives trained alone, CSV or JSON, to compare rankings with",
)
@click.option("--quiet", is_flag=True, help="no progress, no notes")
@click.option("--json", "as_json", is_flag=True, help="print lines of JSON")
@click.pass_obj
def signal_quality(
    plugins: Plugins,
    /,
    config_file: Path | None,
    quality_steps: int,
    quality_every: int,
    quality_sample: int | None,
    scores: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train for some steps, and measure on the way how well signals stand out from noise.

    The cosine of every objective is measured in several ways, each with its t, the mean over its
    standard error. --weighter single-task is plain fine-tuning. --json prints one line per
    objective and way.
    """
    from aang.assembly.sources import prepare_sources
    from aang.cli.progress import counting
    from aang.runs.training import choose_training_device

    from benchmarks.signal_quality import (
        QualityPlan,
        agreements,
        measure_signal_quality,
        read_scores,
        scores_of,
    )

    # Nothing is scored on test, so it is not read.
    options = {**given_options(options), "test_score": False}
    from_file = read_config_file(config_file) if config_file else {}
    config = resolve_config(from_file, options, plugins.registry)
    given = None if scores is None else read_scores(scores)
    weighter = plugins.registry.weighter(config.weighter).load()
    weighted = bool(getattr(weighter, "uses_auxiliaries", True))
    if not weighted:
        # Objectives are built for the default weighter, which does not train them.
        config = config.model_copy(
            update={"weighter": TrainConfig.model_fields["weighter"].default}
        )
    with output_of_plugins():
        sources = prepare_sources(config, plugins.registry)
    if not sources.plan.objectives:
        raise ConfigError(f"--space {config.space}: has no objective to measure")
    # Report names that do not match now, not after minutes of measuring.
    names = [objective.name for objective in sources.plan.objectives]
    known = None if given is None else scores_of(names, given, scores)
    with counting("steps", quiet=quiet) as progress, output_of_plugins():
        found = measure_signal_quality(
            config,
            sources,
            QualityPlan(quality_steps, quality_every, quality_sample, weighted),
            device=choose_training_device(config.device),
            progress=progress,
        )
    agreed = [] if known is None else agreements(found, known)
    if not quiet:
        for line in sources.report.lines():
            note(line)
    if as_json:
        for record in (*found.lines(), *({"agreement": a.__dict__} for a in agreed)):
            echo(json.dumps(record))
        return
    _print(found)
    if agreed:
        rows = [
            [
                a.variant,
                "–" if a.correlation is None else f"{a.correlation:+.2f}",
                str(a.objectives),
            ]
            for a in agreed
        ]
        echo("\nRank correlation (Spearman) with the scores of objectives trained alone:")
        print_table(["variant", "correlation", "objectives"], rows)


def _print(found: SignalQuality) -> None:
    def row(objective: ObjectiveQuality) -> list[str]:
        none = Figure(None, None, 0)
        cells = [_cell(objective.figures.get(variant, none)) for variant in found.variants]
        return [objective.name, *cells, f"{objective.reliability:.2f}"]

    base = found.base
    ranked = sorted(found.objectives, key=lambda o: -(o.figures[base].value or 0.0))
    print_table(
        ["objective", *found.variants, "reliability"],
        [row(objective) for objective in (found.end_task, *ranked)],
    )
    measured = ", ".join(map(str, found.measured))
    echo(
        f"\nMean cosine with the dev gradient (t: mean over standard error) of measurements after "
        f"{measured} steps. Training follows {base}."
    )
    for variant, meaning in found.variants.items():
        echo(f"{variant}: {meaning}")
    echo("reliability: the share of a gradient's squared norm that two batches agree on")


def _cell(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    return f"{figure.value:+.3f}" + ("" if figure.t is None else f" ({figure.t:.1f})")
