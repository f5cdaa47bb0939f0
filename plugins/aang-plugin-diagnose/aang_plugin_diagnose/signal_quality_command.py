"""``aang diagnose --signal-quality``: how reliable the signals of a training are."""

import json
from pathlib import Path

from aang.config import TrainConfig

from aang_core.cli.loaded import output_of_plugins
from aang_core.cli.output import echo, note
from aang_core.cli.tables import print_table
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from aang_plugin_diagnose.signal_quality.figures import Figure, ObjectiveQuality, SignalQuality


def run(
    plugins: Plugins,
    config: TrainConfig,
    plan: tuple[int, int, int | None],
    scores: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure, and print a table or lines of JSON.

    Args:
        plugins: the loaded plug-ins.
        config: the training's options.
        plan: number of steps, steps between measurements, objectives to measure each time.
        scores: file of dev scores to compare rankings with.
        quiet: no progress and no notes.
        as_json: print lines of JSON.

    Raises:
        AangError: something that the user named cannot be used.
    """
    from aang.assembly.sources import prepare_sources
    from aang.cli.progress import counting
    from aang.runs.training import choose_training_device

    from aang_plugin_diagnose.signal_quality import (
        QualityPlan,
        agreements,
        measure_signal_quality,
        read_scores,
        scores_of,
    )

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
    # Names that do not match must not be told after minutes of measuring.
    names = [objective.name for objective in sources.plan.objectives]
    known = None if given is None else scores_of(names, given, scores)
    steps, every, sample = plan
    with counting("steps", quiet=quiet) as progress, output_of_plugins():
        found = measure_signal_quality(
            config,
            sources,
            QualityPlan(steps, every, sample, weighted),
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
