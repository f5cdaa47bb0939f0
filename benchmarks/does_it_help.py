"""Does it help? Every method on ACL-ARC, SciERC and the demo, in the order in which runs decide.

    python -m benchmarks.does_it_help DATA PREPARED MODEL OUT --plan
    python -m benchmarks.does_it_help DATA PREPARED MODEL OUT --jobs 2 --minutes 120

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``, and ``s2orc-domain`` with text of each field. PREPARED is MiniLM after ``aang
prepare-encoder``, MODEL is MiniLM before. The second command writes a comparison file for each
setting and lets ``aang compare`` train what is planned, stage by stage. It can be stopped and
resumed at any time; ``--minutes`` stops it. The runs are in ``OUT/SETTING``, and
``OUT/tables/SETTING`` has the table and the curves of all stages that have ended. With ``--known
FOLDER``, draws of a method that are in ``FOLDER/SETTING/table.json`` are not trained again but
become part of the table; what lacks only later ones, such as 3 and 4, is in ``OUT/SETTING-3-4``.

``--setting`` and ``--method`` train a row of a table alone; the others stay in the table.

A later stage adds methods to a setting. Each draw of ACL-ARC and SciERC has its own training rows;
every method gets the same ones. With 300 steps of 64 rows, SciERC's 3,219 are read six times.
"""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import yaml

from benchmarks.comparison_files import DEMO, FOLDER, OPTIONS, PARTS
from benchmarks.joined_results import Outcome, joined
from benchmarks.table_methods import (
    ALONE,
    ALONE_BY_DEFAULT,
    CHANGES,
    CHANGES_BY_DEFAULT,
    DEFAULTS,
    DEMO_BY_DEFAULT,
    LONGER,
    METHODS,
    READ_DOMAIN,
    rows_of_a_step,
)

SECONDS_PER_ROW = 0.075
"""A row of at most 64 tokens in a training step of MiniLM in fp32 on one core without AVX-512."""
DEMO_SECONDS_PER_ROW = 0.016
"""The same for the demo's encoder."""


@dataclass(frozen=True)
class Setting:
    """A task with an encoder and a number of training rows.

    Attributes:
        task: ``scierc``, ``acl-arc`` or ``demo``.
        rows: training rows of a draw; None for all.
        prepared: whether the encoder was prepared; the demo has its own.
        steps: of training.
        baseline: the method that others are tested against.
        methods: the options of every method by its name.
    """

    task: str
    rows: int | None
    prepared: bool
    steps: int
    baseline: str = "single-task"
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: METHODS)


_DEFAULTS = Setting(
    "scierc", 500, prepared=False, steps=400, baseline="single-task-defaults", methods=DEFAULTS
)
_CHANGED = replace(_DEFAULTS, baseline="factored-td-defaults", methods=CHANGES_BY_DEFAULT)

SETTINGS = {
    "scierc-all": Setting("scierc", None, prepared=True, steps=300),
    "scierc-500": Setting("scierc", 500, prepared=True, steps=200),
    "scierc-500-unprepared": Setting("scierc", 500, prepared=False, steps=200),
    "scierc-500-defaults": replace(_DEFAULTS, prepared=True),
    "acl-arc-500-defaults": replace(_DEFAULTS, task="acl-arc", prepared=True),
    "scierc-500-unprepared-defaults": _DEFAULTS,
    "acl-arc-500-unprepared-defaults": replace(_DEFAULTS, task="acl-arc"),
    "scierc-all-defaults": replace(_DEFAULTS, rows=None, steps=600, prepared=True),
    "scierc-all-unprepared-defaults": replace(_DEFAULTS, rows=None, steps=600),
    "scierc-500-longer": replace(_DEFAULTS, steps=1200, methods=LONGER),
    "acl-arc-500-longer": replace(_DEFAULTS, task="acl-arc", steps=1200, methods=LONGER),
    "scierc-500-alone": replace(_DEFAULTS, methods=ALONE_BY_DEFAULT),
    "acl-arc-500-alone": replace(_DEFAULTS, task="acl-arc", methods=ALONE_BY_DEFAULT),
    "scierc-500-changes": _CHANGED,
    "acl-arc-500-changes": replace(_CHANGED, task="acl-arc"),
    "scierc-200-defaults": replace(_DEFAULTS, rows=200),
    "acl-arc-200-defaults": replace(_DEFAULTS, task="acl-arc", rows=200),
    "demo": Setting("demo", None, prepared=True, steps=300),
    "demo-defaults": Setting(
        "demo",
        None,
        prepared=True,
        steps=300,
        baseline="single-task-defaults",
        methods=DEMO_BY_DEFAULT,
    ),
    "demo-changes": Setting(
        "demo",
        None,
        prepared=True,
        steps=300,
        baseline="factored-td",
        methods={"factored-td": METHODS["factored-td"], **CHANGES},
    ),
    "demo-alone": Setting(
        "demo",
        None,
        prepared=True,
        steps=300,
        methods={"single-task": METHODS["single-task"], **ALONE},
    ),
}


def _by_default(methods: Sequence[str]) -> tuple[str, ...]:
    """The same methods with default options."""
    return tuple(f"{name}-defaults" for name in methods)


@dataclass(frozen=True)
class Stage:
    """Runs that decide a question.

    Attributes:
        question: what they decide.
        settings: the settings in which they are trained.
        methods: what is trained, besides what earlier stages trained there.
        draws: how many draws of each.
    """

    question: str
    settings: Sequence[str]
    methods: Sequence[str]
    draws: int


CORE = ("single-task", "contrast")
TD = ("static-td", "factored-td", "factored-td+ed", "tapt")
MORE_ROWS = ("single-task-48-defaults", "contrast-48-defaults")
"""Controls that read as many rows as methods with a stage of pre-training."""
LEARNED = ("factored-td+c",)
CONTROL = ("single-task-96",)
VIEWS = ("contrast+views", "contrast+views-96")

CORE_DEFAULTS = _by_default(CORE)
LEARNED_DEFAULTS = _by_default(LEARNED)
BEST = (*CORE_DEFAULTS, "single-task-48-defaults", "tapt+contrast-defaults")
"""The two methods that were best on dev, and plain fine-tuning with as many rows as each."""
BEST_OF_ALL = (*CORE_DEFAULTS, "single-task-48-defaults", *LEARNED_DEFAULTS)
"""The same, for all labelled rows and a prepared encoder."""
OTHER_HEAD = ("aang-td-remembered-defaults",)
"""The published system with the default dev head, which is not in the table."""
FULL_SIZE = ("aang-td-full-defaults",)
"""The published system with all of its rows; the table has an eighth of them."""
MEAN = ("contrast+mean-defaults", "single-task+mean-defaults")
"""The two of CORE_DEFAULTS with a layer whose first token begins as the mean of all tokens."""
TABLE_DEFAULTS = tuple(n for n in DEFAULTS if n not in (*OTHER_HEAD, *FULL_SIZE, *MEAN))
"""The methods planned for the settings with 500 rows and the unprepared encoder."""
SHORTER_TABLE = tuple(name for name in TABLE_DEFAULTS if name != "contrast-48-defaults")
"""The methods planned for the other settings: more rows add nothing to contrast."""
FEW = ("scierc-500-defaults", "acl-arc-500-defaults")
"""Both need a prepared encoder, and the same one: one machine trains both."""
UNPREPARED = ("scierc-500-unprepared-defaults", "acl-arc-500-unprepared-defaults")
MORE_STEPS = ("scierc-500-longer", "acl-arc-500-longer")
FEWER = ("scierc-200-defaults", "acl-arc-200-defaults")
CHANGED = ("scierc-500-changes", "acl-arc-500-changes")
ALONE_LABELLED = ("scierc-500-alone", "acl-arc-500-alone")
ALL = ("scierc-all-unprepared-defaults",)
ALL_PREPARED = ("scierc-all-defaults",)

STAGES = (
    Stage("Does contrast help where all rows are labelled?", ["scierc-all"], CORE, 3),
    Stage("And on the demo?", ["demo"], CORE, 5),
    Stage("Is what gets most weight best alone?", ["demo-alone"], ["single-task", *ALONE], 1),
    Stage("Which part of AANG adds what?", ["demo-changes"], ["factored-td", *CHANGES], 3),
    Stage("Do changed texts add to contrast?", ["demo"], [*VIEWS, "contrast-96"], 3),
    Stage("Does contrast help without preparing?", ["scierc-500-unprepared"], CORE, 3),
    Stage("And changed texts?", ["scierc-500-unprepared"], ["contrast-96", "contrast+views-96"], 3),
    Stage("And a third encoder?", ["scierc-500"], CORE, 3),
    Stage("Does contrast help by default?", [*FEW[:1], *UNPREPARED, *FEWER], CORE_DEFAULTS, 3),
    Stage("And on the demo?", ["demo-defaults"], CORE_DEFAULTS, 5),
    Stage("And where all rows are labelled?", ALL, CORE_DEFAULTS, 3),
    Stage("What do td and further pre-training reach?", UNPREPARED, _by_default(TD), 3),
    Stage(
        "Does contrast add to further pre-training?",
        UNPREPARED,
        ["tapt+contrast-defaults", *MORE_ROWS],
        3,
    ),
    Stage("Do td and further pre-training need more steps?", MORE_STEPS, list(LONGER), 3),
    Stage("And the rest of the table?", UNPREPARED, TABLE_DEFAULTS, 3),
    Stage("Is it the dev head that misleads AANG as published?", UNPREPARED[:1], OTHER_HEAD, 3),
    Stage("And with a prepared encoder?", FEW, SHORTER_TABLE, 3),
    Stage("Is the best ahead over more draws?", [*UNPREPARED, *FEW], BEST, 5),
    Stage("And what is best of all on dev with a prepared encoder?", FEW, LEARNED_DEFAULTS, 5),
    Stage("And all of it where all rows are labelled?", ALL_PREPARED, SHORTER_TABLE, 3),
    Stage("And with three times the steps?", MORE_STEPS, CORE_DEFAULTS, 5),
    Stage("And learned weights on the demo?", ["demo"], [*LEARNED, *CONTROL, "static-td"], 5),
    Stage("Is what gets most weight best alone?", ["demo-alone"], ["single-task", *ALONE], 3),
    Stage("And on SciERC?", ["scierc-500-alone"], list(ALONE_BY_DEFAULT), 1),
    Stage("Which part of AANG adds what by default?", CHANGED, list(CHANGES_BY_DEFAULT), 3),
    Stage("And with all rows of the published system?", UNPREPARED, FULL_SIZE, 3),
    Stage("And over draws, on both tasks?", ALONE_LABELLED, list(ALONE_BY_DEFAULT), 3),
    Stage("And the best over more draws of all rows?", ALL_PREPARED, BEST_OF_ALL, 5),
    Stage("And over more draws of all rows as it comes?", ALL, CORE_DEFAULTS, 5),
    Stage("Does a mean layer help contrast?", UNPREPARED, MEAN[:1], 5),
    Stage("And plain fine-tuning?", UNPREPARED, MEAN[1:], 5),
    Stage("And both with 200 labels?", FEWER, MEAN, 3),
    Stage("And where all rows are labelled?", ALL, MEAN, 5),
)


@dataclass(frozen=True)
class Part:
    """A stage in one of its settings.

    Attributes:
        number: number of the stage, from 1.
        setting: the setting's name.
        methods: the methods of this stage, and of earlier ones that have as many draws.
        draws: their numbers.
        new: how many runs earlier stages did not train.
        hours: hours that these take on one core.
    """

    number: int
    setting: str
    methods: tuple[str, ...]
    draws: tuple[int, ...]
    new: int
    hours: float

    @property
    def folder(self) -> str:
        """The folder of its table; a table of only further draws has a folder of its own."""
        if self.draws == tuple(range(len(self.draws))):
            return self.setting
        return "-".join([self.setting, *map(str, self.draws)])


def parts() -> Iterator[Part]:
    """The plan, in order."""
    trained: dict[str, dict[tuple[str, int], None]] = {name: {} for name in SETTINGS}
    for number, stage in enumerate(STAGES, start=1):
        for name in stage.settings:
            runs = [(method, draw) for method in stage.methods for draw in range(stage.draws)]
            new = [run for run in runs if run not in trained[name]]
            trained[name] |= dict.fromkeys(new)
            setting = SETTINGS[name]
            rows = setting.steps * sum(rows_of_a_step(setting.methods, m) for m, _ in new)
            methods = dict.fromkeys(method for method, _ in trained[name])
            complete = tuple(m for m in methods if (m, stage.draws - 1) in trained[name])
            of_row = DEMO_SECONDS_PER_ROW if setting.task == "demo" else SECONDS_PER_ROW
            hours = rows * of_row / 3600
            draws = tuple(range(stage.draws))
            yield Part(number, name, complete, draws, len(new), hours)


def still_to_train(part: Part, known: Path) -> list[Part]:
    """The part without the runs that are in the setting's table.

    Args:
        part: of the plan.
        known: a folder with tables, ``SETTING/table.json``.

    Returns:
        A part for all methods that lack the same draws.
    """
    table = known / part.setting / "table.json"
    entries = json.loads(table.read_text(encoding="utf-8")) if table.exists() else []
    trained = {entry["method"]: set(entry["seeds"]) for entry in entries}
    lacking: dict[tuple[int, ...], list[str]] = {}
    for method in part.methods:
        missing = tuple(d for d in part.draws if d not in trained.get(method, ()))
        lacking.setdefault(missing, []).append(method)
    return [
        replace(part, methods=tuple(methods), draws=draws)
        for draws, methods in lacking.items()
        if draws
    ]


def asked_for(setting: str | None, methods: Sequence[str], known: Path | None) -> list[Part]:
    """The parts of the plan with something to train, reduced to that.

    Args:
        setting: the setting to train; None for all.
        methods: the methods to train; all of them if empty.
        known: a folder with tables of what need not be trained.

    Raises:
        click.UsageError: a method is not planned there.
    """
    planned = [part for part in parts() if setting in (None, part.setting)]
    names = {method for part in planned for method in part.methods}
    if missing := set(methods) - names:
        raise click.UsageError(f"no method {min(missing)}, only {', '.join(sorted(names))}")
    left = planned
    if known is not None:
        left = [lacking for part in planned for lacking in still_to_train(part, known)]
    chosen = set(methods) or names
    kept = [replace(part, methods=tuple(m for m in part.methods if m in chosen)) for part in left]
    return [part for part in kept if part.methods]


def comparison(
    part: Part, data: Path, prepared: Path, model: Path, precision: str = "fp32"
) -> dict[str, Any]:
    """The comparison file of a part of the plan."""
    setting = SETTINGS[part.setting]
    if setting.task == "demo":
        task: Mapping[str, Any] = DEMO
    else:
        task = {name: str(data / setting.task / f"{name}.jsonl") for name in PARTS}
        if setting.rows is not None:
            task = {**task, "train_rows": setting.rows}
    domain = {"domain": str(data / "s2orc-domain" / f"{setting.task}.1x.txt")}
    return {
        "tasks": {setting.task: {**task, "steps": setting.steps}},
        "methods": {
            name: {**setting.methods[name], **(domain if name in READ_DOMAIN else {})}
            for name in part.methods
        },
        "seeds": list(part.draws),
        **({"baseline": setting.baseline} if setting.baseline in part.methods else {}),
        "options": {
            **{name: value for name, value in OPTIONS.items() if name not in task},
            "precision": precision,
            **({} if "model" in task else {"model": str(prepared if setting.prepared else model)}),
        },
    }


def tell_plan() -> None:
    """Print the plan with its hours on one core, as a table."""
    click.echo("| stage | question | setting | draws | runs | hours |")
    click.echo("|---|---|---|---|---|---|")
    total = 0.0
    for part in parts():
        total += part.hours
        question = STAGES[part.number - 1].question
        click.echo(
            f"| {part.number} | {question} | {part.setting} | {len(part.draws)} | {part.new} "
            f"| {part.hours:.1f} |"
        )
    click.echo(f"\n{total:.0f} hours on one core")


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("data", type=FOLDER)
@click.argument("prepared", type=FOLDER)
@click.argument("model", type=FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--plan", is_flag=True, help="print the plan and its hours, and train nothing")
@click.option("--jobs", default=1, help="runs at once; give each one thread")
@click.option("--minutes", type=float, help="stop after so many minutes")
@click.option("--known", type=FOLDER, help="tables of what need not be trained again")
@click.option(
    "--precision",
    default="fp32",
    type=click.Choice(["fp32", "bf16"]),
    help="of all runs; a table has one",
)
@click.option("--setting", "only", type=click.Choice(list(SETTINGS)), help="only this setting")
@click.option("--method", "chosen", multiple=True, help="only this method; may be given again")
def main(
    data: Path,
    prepared: Path,
    model: Path,
    out: Path,
    plan: bool,
    jobs: int,
    minutes: float | None,
    known: Path | None,
    precision: str,
    only: str | None,
    chosen: tuple[str, ...],
) -> None:
    """Train what is planned and not yet trained."""
    if plan:
        tell_plan()
        return
    began = time.monotonic()
    asked = asked_for(only, chosen, known)
    found = {} if known is None else _known(known, chosen)
    out.mkdir(parents=True, exist_ok=True)
    for part in asked:
        left = None if minutes is None else minutes - (time.monotonic() - began) / 60
        if left is not None and left <= 0:
            break
        file = out / f"{part.number}-{part.folder}.yaml"
        content = comparison(part, data, prepared, model, precision)
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        command = ["aang", "compare", str(file), "--out", str(out / part.folder)]
        command += ["--jobs", str(jobs)]
        command += ["--difference"] if "baseline" in content else []
        # Rounding must not make it zero, which `aang compare` refuses.
        command += [] if left is None else ["--minutes", f"{max(left, 0.01):.2f}"]
        click.echo(shlex.join(command))
        if status := _run([sys.executable, "-m", "aang_core", *command[1:]]):
            sys.exit(status)
        # The next stage of the setting has its own methods in the table of `aang compare`.
        outcomes = found.setdefault(part.setting, [])
        outcomes.append(Outcome.of(out / part.folder))
        baseline = SETTINGS[part.setting].baseline
        table = out / "tables" / part.setting
        with_earlier(outcomes, table, baseline).write(table, baseline)


def with_earlier(outcomes: Sequence[Outcome], table: Path, baseline: str) -> Outcome:
    """The outcomes of this call joined with the runs that only the table of earlier calls has.

    Args:
        outcomes: the outcomes of this call, including known runs.
        table: the folder of the table; it need not exist.
        baseline: the method that the others are tested against.
    """
    if not (table / "table.json").exists():
        return joined(outcomes, baseline)
    return joined([Outcome.of(table).without_runs_of(outcomes), *outcomes], baseline)


def _known(folder: Path, methods: Sequence[str]) -> dict[str, list[Outcome]]:
    """The known runs of each setting for ``methods``; for all methods if empty."""
    found = {}
    for name in SETTINGS:
        if (folder / name / "table.json").exists():
            known = Outcome.of(folder / name)
            wanted = {entry.method for entry in known.entries if entry.quick} | set(methods)
            found[name] = [known.only(wanted) if methods else known]
    return found


def _run(command: Sequence[str]) -> int:
    """The exit status of a command, which saves checkpoints before Ctrl-C ends it."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return process.wait() or 128 + signal.SIGINT  # Ctrl-C reached the command, too


if __name__ == "__main__":
    main()
