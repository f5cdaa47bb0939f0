"""What is fuzzed: everything that reads what a user or a stranger wrote."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path, PurePath

import pyarrow as pa
import yaml
from aang_plugin_compare.spec import read_comparison
from aang_plugin_report.figures import charts_of
from aang_plugin_report.page import tables_of
from aang_plugin_s2orc.source import S2orc
from aang_plugin_text.out_of_domain import OutOfDomain
from pyarrow import parquet

from aang_core.assembly.labelled_tasks import end_task_columns
from aang_core.cli.train import parse_files
from aang_core.config import AUXILIARY_TASKS, read_config_file, resolve_config
from aang_core.config.settings import parse_settings
from aang_core.corpora.labelled import Columns
from aang_core.corpora.labelled_task import LabelledTask, load_task
from aang_core.corpora.unlabelled_texts import UnlabelledTexts
from aang_core.errors import AangError
from aang_core.objectives.space import load_space
from aang_core.objectives.stages import DataContext, Example, ReadReport
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.registry import Registry
from aang_core.runs.new_folder import new_run_folder
from aang_core.runs.run import Run
from aang_core.runs.texts_to_predict import rows_of_file
from aang_core.tasks.processes import ALONE

Check = Callable[[Path], None]
"""Reads the file; returns or raises AangError, and whatever else it raises is a fault."""


@dataclass(frozen=True)
class Target:
    """Something that reads.

    file: what the input is called. kind: see `benchmarks.fuzzing.mutate.Mutator`.
    """

    file: str
    kind: str
    seeds: Sequence[bytes]
    check: Check


RECORDS = [
    {"text": 'He said "no", twice.', "label": "yes", "id": 1},
    {"text": "Zürich — naïve café", "label": "no", "id": 2},
    {"text": "مرحبا 😀 x", "label": "yes", "id": 3},
    {"text": "plain words, and more of them", "label": "no", "id": 4},
    {"text": "1", "label": "yes", "id": 5},
]

_END_TASK = LabelledTask(
    "task",
    (Example("words of the end task", label="yes"),),
    (Example(str(RECORDS[3]["text"]), label="no"),),
    (),
    ("no", "yes"),
)
"""One of the records is its dev example, which is left out."""


def _labelled(path: Path) -> None:
    report = ReadReport()
    try:
        task = load_task(path, dev_fraction=0.3, report=report)
    finally:
        report.lines()
    for example in (*task.train, *task.dev):
        assert example.text.strip()
        assert example.label
        f"{example.text}{example.label}".encode()


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
    # Arguments hold any bytes but null; Python hands those that are not UTF-8 on as surrogates.
    content = path.read_bytes().replace(b"\0", b"")
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    resolve_config({}, {"set": parse_settings(lines[:4])}, _registry())
    resolve_config({}, {"aux_task": parse_files(lines[4:])}, _registry())


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
    """The check of a run folder in which one file is another: its name, then what it holds.

    run: a folder that may be changed.
    """
    whole = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}

    def check(path: Path) -> None:
        name, _, content = path.read_bytes().partition(b"\n")
        known = name.decode("latin-1")
        if known not in whole:
            return
        (run / known).write_bytes(content)
        try:
            finished = Run.open(run)
            charts_of(finished)
            tables_of(finished)
            finished.differences(_plugins())
            assert finished.model_folder.resolve().is_relative_to(run.resolve())
            end_task_columns(finished.config)
        finally:
            (run / known).write_bytes(whole[known])

    return check


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


def _lines(records: Sequence[object]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _separated(comma: str) -> bytes:
    def cell(value: object) -> str:
        return str(value) if comma == "\t" else '"' + str(value).replace('"', '""') + '"'

    rows = [list(RECORDS[0]), *([*record.values()] for record in RECORDS)]
    return "\n".join(comma.join(map(cell, row)) for row in rows).encode() + b"\n"


def _parquet() -> bytes:
    file = BytesIO()
    parquet.write_table(pa.Table.from_pylist(RECORDS), file)
    return file.getvalue()


_PARAGRAPH = "We train an encoder on unlabelled text of the domain, and it helps."
_S2ORC_2020 = (
    _lines(
        [
            {
                "paper_id": "77",
                "abstract": [{"text": _PARAGRAPH, "section": "Abstract"}],
                "body_text": [{"text": _PARAGRAPH}, {"text": "Short."}],
            },
            {"paper_id": "78", "abstract": [], "body_text": [{"text": _PARAGRAPH * 3}]},
        ]
    ),
    _lines(
        [
            {
                "paper_id": "77",
                "title": "A title that is long enough",
                "abstract": _PARAGRAPH,
                "mag_field_of_study": ["Computer Science"],
                "has_pdf_parse": True,
            },
            {"paper_id": "79", "title": None, "abstract": None, "mag_field_of_study": None},
        ]
    ),
)
_SPANS = json.dumps([{"start": 0, "end": 40}, {"start": "41", "end": "67"}])
_S2AG = (
    _lines(
        [
            {
                "corpusid": 7,
                "content": {
                    "text": _PARAGRAPH * 2,
                    "annotations": {"paragraph": _SPANS, "abstract": None},
                },
            },
            {"corpusid": 8, "body": {"text": f"{_PARAGRAPH}\n\n{_PARAGRAPH}", "annotations": None}},
        ]
    ),
    _lines(
        [
            {
                "corpusid": 7,
                "title": "A title that is long enough",
                "s2fieldsofstudy": [{"category": "Computer Science", "source": "x"}],
            },
            {"corpusid": 9, "abstract": _PARAGRAPH},
        ]
    ),
)
_PES2O = (
    _lines(
        [
            {"id": "1", "text": f"{_PARAGRAPH}\n\n{_PARAGRAPH}", "source": "s2orc", "created": "x"},
            {"id": 2, "text": "A title\n" + _PARAGRAPH, "version": "v3"},
        ]
    ),
    _lines([{"text": _PARAGRAPH}]),
)
_TEXT = (
    f"{_PARAGRAPH}\n{_PARAGRAPH}\n\n{_PARAGRAPH}\n".encode(),
    f"{_PARAGRAPH}\r\nزمان و زبان در این متن بلند نوشته شده است\r\n".encode(),
    f"{_PARAGRAPH}\n{_PARAGRAPH}\n".encode("utf-16"),
    gzip.compress(f"{_PARAGRAPH}\n{_PARAGRAPH}\n".encode(), mtime=0),
)
_CONFIG = (
    b"train: a/train.jsonl\ndev: a/dev.jsonl\ntext: body\nlabel: y\nmodel: roberta-base\n"
    b"space: td\nweighter: factored\nset: {factored: {lr: 0.5, n: 3}, mask: {rate: 1e-1}}\n"
    b"seed: 3\nsteps: 10\nlr: 1e-4\nprecision: fp32\nmeta-every: 2\nlog: [tensorboard]\n",
    b"dataset: glue:rte\ntext-pair: hypothesis\nrecipe: tapt\nout: runs/x\ndomain: [a.txt, b.gz]\n",
    b"train: a.csv\naux_task: {wnli: b.tsv, mrpc: c.jsonl}\ntarget: wnli\nspace: aux-tasks\n",
)
_SETTINGS = (
    b"factored.lr=0.5\nmask.rate=0.3\nwnli.text_pair=premise\ns2orc.field='Computer Science'\n"
    b"wnli=wnli/train.tsv\nother-task=x.csv",
    b"factored.n=3\nstatic.end_task_weight=0.5\na.b=[1, {c: d}]\nx:y.z=~\nmrpc=b.jsonl",
)
_COMPARISON = (
    b"tasks:\n  acl: {train: acl/train.jsonl, test: acl/test.jsonl}\n  demo: {}\n"
    b"methods:\n  plain: {weighter: single-task}\n  tapt: {recipe: tapt}\n"
    b"  aang: {space: td, weighter: factored, set: {factored: {n: 3}}}\n"
    b"seeds: [0, 1]\nbaseline: plain\noptions: {steps: 3, lr: 1e-3}\n"
    b"grid: {lr: [1e-4, 1e-3], factored.lr: [0.1, 1.0]}\n",
    b"tasks: {a: {train: x.csv}}\nmethods: {m: {}}\ngrid: paper-td\n",
)
_SPACE = (
    b"name: mine\nsummary: what it is for\ndata: [task]\ntransform: [bert-op, mask: {rate: 0.2}]\n"
    b"representation:\n  - bidirectional\n  - random-factorized\noutput: [denoise, end-task]\n"
    b"exclude: [task/mask/bidirectional/end-task]\n",
    b"name: two+\ndata: [task, s2orc]\ntransform: [no-op]\nrepresentation: [left-to-right]\n"
    b"output: ['aang-plugin-bert:denoise', tf-idf]\n",
)
_OBJECTIVE = (b"task/mask/bidirectional/denoise", b"elmo", b"td", b"aang-core:td", b"tapt")

TARGETS: Mapping[str, Target] = {
    "jsonl": Target("a.jsonl", "json", [_lines(RECORDS)], _tables_of),
    "json": Target("a.json", "json", [json.dumps(RECORDS).encode(), _lines(RECORDS)], _tables_of),
    "csv": Target("a.csv", "bytes", [_separated(",")], _tables_of),
    "tsv": Target("a.tsv", "bytes", [_separated("\t")], _tables_of),
    "parquet": Target("a.parquet", "parquet", [_parquet()], _tables_of),
    "jsonl.gz": Target("a.jsonl.gz", "json", [_lines(RECORDS)], _tables_of),
    "csv.gz": Target("a.csv.gz", "bytes", [_separated(",")], _tables_of),
    "text": Target("a.txt", "bytes", _TEXT, _plain_text),
    "unlabelled-jsonl": Target("a.jsonl", "json", [_lines(RECORDS)], _unlabelled),
    "unlabelled-jsonl.gz": Target("a.ndjson.gz", "json", [_lines(RECORDS)], _unlabelled),
    "unlabelled-csv": Target("a.csv", "bytes", [_separated(",")], _unlabelled),
    "unlabelled-parquet": Target("a.parquet", "parquet", [_parquet()], _unlabelled),
    "unlabelled-text": Target("a.txt", "bytes", _TEXT, _unlabelled),
    "s2orc-2020": Target("a.jsonl", "json", _S2ORC_2020, _papers),
    "s2ag": Target("a.jsonl", "json", _S2AG, _papers),
    "pes2o": Target("a.jsonl.gz", "json", _PES2O, _papers),
    "config": Target("c.yaml", "yaml", _CONFIG, _config),
    "set": Target("set", "bytes", _SETTINGS, _settings),
    "comparison": Target("c.yaml", "yaml", _COMPARISON, _comparison),
    "space": Target("s.yaml", "yaml", _SPACE, _space),
    "objective": Target("o", "bytes", _OBJECTIVE, _objective),
}
"""By name; ``run-folder`` comes besides, for which a run must be at hand."""
