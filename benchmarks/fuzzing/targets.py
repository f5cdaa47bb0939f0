"""What is fuzzed: everything that reads what a user or a stranger wrote."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

import yaml
from aang.assembly.labelled_tasks import end_task_columns
from aang.cli.schema_options import parse_tasks
from aang.config import AUXILIARY_TASKS, read_config_file, resolve_config
from aang.config.values import parse_settings
from aang.corpora.columns import Columns
from aang.corpora.labelled_task import LabelledTask, TaskReading, load_task
from aang.corpora.unlabelled_texts import UnlabelledTexts
from aang.runs.prediction_files import rows_of_file
from aang.runs.resume import new_run_folder
from aang.runs.run import Run
from aang.task_types.words import word_places
from aang_plugin_compare.planning import read_comparison
from aang_plugin_report.figures import charts_of
from aang_plugin_report.page import tables_of
from aang_plugin_s2orc.source import S2orc
from aang_plugin_text.out_of_domain import OutOfDomain

from aang_core.errors import AangError
from aang_core.objectives.space import load_space
from aang_core.objectives.stages import DataContext, Example, ReadReport
from aang_core.objectives.stages.data import TaggedWord
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.registry import Registry
from aang_core.tasks.processes import ALONE
from benchmarks.fuzzing.another_file import with_another_file
from benchmarks.fuzzing.seeds import (
    COMPARISON,
    CONFIG,
    IN_SPANS,
    MARKED,
    NUMBERS,
    NUMBERS_CSV,
    OBJECTIVE,
    PES2O,
    RECORDS,
    S2AG,
    S2ORC_2020,
    SETS,
    SETTINGS,
    SPACE,
    TAGGED,
    TAGGED_CSV,
    TEXT,
    lines,
    parquet_file,
    separated,
)

Check = Callable[[Path], None]
"""Reads the file, and returns or raises AangError; any other exception is a fault."""


@dataclass(frozen=True)
class Target:
    """Something that reads.

    file: what the input is called. kind: see `benchmarks.fuzzing.mutate.Mutator`.
    """

    file: str
    kind: str
    seeds: Sequence[bytes]
    check: Check


_END_TASK = LabelledTask(
    "task",
    (Example("words of the end task", label="yes"),),
    (Example(str(RECORDS[3]["text"]), label="no"),),
    (),
    ("no", "yes"),
)
"""Its dev example is one of the records, which must be left out."""


def _labelled(path: Path) -> None:
    report = ReadReport()
    try:
        task = load_task({"train": path}, TaskReading(dev_fraction=0.3), report, "task")
    finally:
        report.lines()
    for example in (*task.train, *task.dev):
        assert example.text.strip()
        assert example.label
        f"{example.text}{example.label}".encode()


def _of_kind(kind: str) -> Check:
    """Read it as a task whose kind is chosen from its labels, and as one whose kind is named."""

    def check(path: Path) -> None:
        with suppress(AangError):
            _encoded(path, None)
        _encoded(path, kind)

    return check


def _encoded(path: Path, kind: str | None) -> None:
    """From the file to the tensors that a training reads."""
    report = ReadReport()
    reading = TaskReading(task_type=kind, dev_fraction=0.3)
    task = load_task({"train": path}, reading, report, "task")
    report.lines()
    examples = [*task.train, *task.dev]
    places = [word_places(example.text) for example in examples]
    labels = [example.label for example in examples]
    encoded = task.task_type.encode(labels, lambda: places, str(path))
    tensor = encoded.tokens if encoded.rows is None else encoded.rows
    assert tensor is not None
    assert bool(tensor.isfinite().all())
    if task.task_type.name == "regression":
        assert 0.99 < float(tensor.double().std(correction=0)) < 1.01
    if encoded.tokens is None:
        task.task_type.counts(tensor)
        task.task_type.baseline_scores(tensor, tensor)
    for example in examples:
        assert example.text.strip()
        example.text.encode()
        for word in example.label if isinstance(example.label, tuple) else ():
            if isinstance(word, TaggedWord):
                assert example.text[word.start : word.end].strip()


def _texts(path: Path) -> None:
    for row in rows_of_file(path, Columns(), ReadReport()):
        row.text[0].encode()


def _tables_of(path: Path) -> None:
    """As ``aang train`` reads it, and as ``aang predict`` does."""
    _texts(path)
    _labelled(path)


def _plain_text(path: Path) -> None:
    """As both data primitives that read plain text do."""
    with suppress(AangError):
        _read_papers(path, S2orc(min_length=1))
    report = ReadReport()
    for example in OutOfDomain().examples(DataContext([], out_of_domain=[path], report=report)):
        example.text.encode()
    report.lines()


def _unlabelled(path: Path) -> None:
    """As ``--unlabelled`` of a task with two texts per example, and of one with a single text."""
    with suppress(AangError):  # plain text has no second one, and the rest is to be read as well
        _read_unlabelled(path, Columns(text_pair="label"))
    _read_unlabelled(path, Columns())


def _read_unlabelled(path: Path, columns: Columns) -> None:
    report = ReadReport()
    try:
        for example in UnlabelledTexts([str(path)], columns, _END_TASK, report):
            assert example.text.strip()
            assert (example.text_pair is None) == (columns.text_pair is None)
            f"{example.text}{example.text_pair}".encode()
    finally:
        report.lines()


def _papers(path: Path) -> None:
    with suppress(AangError):  # few inputs have the field, and the rest is to be read as well
        _read_papers(path, S2orc("Computer Science", min_length=1))
    _read_papers(path, S2orc(min_length=1))


def _read_papers(path: Path, source: S2orc) -> None:
    report = ReadReport()
    for example in source.examples(DataContext([], domain=[path], report=report)):
        assert example.text.strip()
    report.lines()


def _config(path: Path) -> None:
    config = resolve_config(read_config_file(path), {}, _registry())
    written = yaml.dump(config.model_dump(mode="json", exclude={"out"}), Dumper=yaml.CSafeDumper)
    again = resolve_config(yaml.load(written, yaml.CSafeLoader), {}, _registry())
    assert again.model_dump(exclude={"out"}) == config.model_dump(exclude={"out"})
    with new_run_folder(config, ALONE) as folder:
        assert folder == config.out or folder.parent == Path("runs")
    _registry().weighter(config.weighter)
    if config.space != AUXILIARY_TASKS and not config.space.endswith((".yaml", ".yml")):
        _ = load_space(config.space, _registry()).objectives


def _settings(path: Path) -> None:
    # Arguments hold any bytes but null; Python passes those that are not UTF-8 as surrogates.
    content = path.read_bytes().replace(b"\0", b"")
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    resolve_config({}, {"set": parse_settings(lines[:4])}, _registry())
    resolve_config({}, {"aux_task": parse_tasks(lines[4:])}, _registry())


def _comparison(path: Path) -> None:
    for cell in read_comparison(path, _registry()).cells:
        assert ".." not in cell.folder.parts
        assert not PurePath(cell.folder).is_absolute()


def _space(path: Path) -> None:
    space = load_space(path, _registry())
    assert len(space.objectives) + len(space.dropped) == len(space.combinations)


def _objective(path: Path) -> None:
    name = path.read_bytes().decode("utf-8", "surrogateescape")
    if not name.endswith((".yaml", ".yml")):
        _ = load_space(name, _registry()).dropped


def run_folder_check(run: Path) -> Check:
    """The check of a run folder with one file replaced; inputs have its name, then its content.

    The result has no checksums of the logs, as in runs of older versions, so that changed logs are
    read.

    run: a folder that may be changed.
    """
    result = run / "result.json"
    document = json.loads(result.read_text(encoding="utf-8"))
    document.pop("logs", None)
    result.write_text(json.dumps(document), encoding="utf-8")

    def use() -> None:
        finished = Run.open(run)
        charts_of(finished)
        tables_of(finished)
        finished.differences(_plugins())
        assert finished.model_folder.resolve().is_relative_to(run.resolve())
        end_task_columns(finished.config)

    return with_another_file(run, [path.name for path in run.iterdir() if path.is_file()], use)


def run_folder_seeds(run: Path) -> list[bytes]:
    """Each file of the run with its name before it."""
    names = ("result", "plugins", "data", "evaluation")
    files = [*(f"{name}.json" for name in names), "metrics.jsonl", "weights.jsonl"]
    return [name.encode() + b"\n" + (run / name).read_bytes() for name in files]


@cache
def _plugins() -> Plugins:
    return load_plugins()


def _registry() -> Registry:
    return _plugins().registry


TARGETS: Mapping[str, Target] = {
    "jsonl": Target("a.jsonl", "json", [lines(RECORDS)], _tables_of),
    "json": Target("a.json", "json", [json.dumps(RECORDS).encode(), lines(RECORDS)], _tables_of),
    "csv": Target("a.csv", "bytes", [separated(",")], _tables_of),
    "tsv": Target("a.tsv", "bytes", [separated("\t")], _tables_of),
    "parquet": Target("a.parquet", "parquet", [parquet_file()], _tables_of),
    "jsonl.gz": Target("a.jsonl.gz", "json", [lines(RECORDS)], _tables_of),
    "csv.gz": Target("a.csv.gz", "bytes", [separated(",")], _tables_of),
    "text": Target("a.txt", "bytes", TEXT, _plain_text),
    "multi-label-jsonl": Target("a.jsonl", "json", [lines(SETS)], _of_kind("multi-label")),
    "multi-label-csv": Target("a.csv", "bytes", MARKED, _of_kind("multi-label")),
    "regression-jsonl": Target("a.jsonl", "json", [lines(NUMBERS)], _of_kind("regression")),
    "regression-csv": Target("a.csv", "bytes", [NUMBERS_CSV], _of_kind("regression")),
    "token-labels-jsonl": Target(
        "a.jsonl", "json", [lines(TAGGED), lines(IN_SPANS)], _of_kind("token-labels")
    ),
    "token-labels-csv": Target(
        *("a.csv", "bytes"),
        [TAGGED_CSV],
        _of_kind("token-labels"),
    ),
    "unlabelled-jsonl": Target("a.jsonl", "json", [lines(RECORDS)], _unlabelled),
    "unlabelled-jsonl.gz": Target("a.ndjson.gz", "json", [lines(RECORDS)], _unlabelled),
    "unlabelled-csv": Target("a.csv", "bytes", [separated(",")], _unlabelled),
    "unlabelled-parquet": Target("a.parquet", "parquet", [parquet_file()], _unlabelled),
    "unlabelled-text": Target("a.txt", "bytes", TEXT, _unlabelled),
    "s2orc-2020": Target("a.jsonl", "json", S2ORC_2020, _papers),
    "s2ag": Target("a.jsonl", "json", S2AG, _papers),
    "pes2o": Target("a.jsonl.gz", "json", PES2O, _papers),
    "config": Target("c.yaml", "yaml", CONFIG, _config),
    "set": Target("set", "bytes", SETTINGS, _settings),
    "comparison": Target("c.yaml", "yaml", COMPARISON, _comparison),
    "space": Target("s.yaml", "yaml", SPACE, _space),
    "objective": Target("o", "bytes", OBJECTIVE, _objective),
}
"""Targets by name, except ``run-folder``, which needs a run."""
