"""Valid files of every kind that is read, which the fuzzer damages."""

import gzip
import json
from collections.abc import Mapping, Sequence
from io import BytesIO

import pyarrow as pa
from aang_plugin_task_types.multi_label import SEPARATORS
from pyarrow import parquet

RECORDS: list[dict[str, object]] = [
    {"text": 'He said "no", twice.', "label": "yes", "id": 1},
    {"text": "Zürich — naïve café", "label": "no", "id": 2},
    {"text": "مرحبا 😀 x", "label": "yes", "id": 3},
    {"text": "plain words, and more of them", "label": "no", "id": 4},
    {"text": "1", "label": "yes", "id": 5},
]


def lines(records: Sequence[object]) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _relabelled(labels: Sequence[object]) -> list[dict[str, object]]:
    pairs = zip(RECORDS, labels, strict=True)
    return [{"text": record["text"], "label": label} for record, label in pairs]


def _table_of(records: Sequence[Mapping[str, object]]) -> bytes:
    rows: list[list[object]] = [["text", "label"], *([*record.values()] for record in records)]
    cells = [[str(cell).replace('"', '""') for cell in row] for row in rows]
    return "".join('"' + '","'.join(row) + '"\n' for row in cells).encode()


SETS = _relabelled([["a", "b"], [], ["b"], ["a"], ["b", "c"]])
MARKED = tuple(
    _table_of(_relabelled([mark.join(row) for row in (["a", "b"], [], ["b"], ["a"], ["b", "c"])]))
    for mark in SEPARATORS
)
NUMBERS = _relabelled([1.5, -2, "3e-4", 0, 12345.678])
NUMBERS_CSV = _table_of(NUMBERS)
TAGGED = [
    {"text": tokens, "label": [tag if i % 2 else "O" for i in range(len(tokens))]}
    for record, tag in zip(RECORDS, ("B-X", "B-Y", "I-X", "X", "B-X"), strict=True)
    for tokens in [str(record["text"]).split()]
]
TAGGED_CSV = _table_of([{k: " ".join(v) for k, v in row.items()} for row in TAGGED])
IN_SPANS = _relabelled(
    [
        [{"start": 0, "end": 2, "label": "PER"}, [3, 7, "LOC"]],
        [[0, 6, "LOC"]],
        [],
        [[0, 11, "PER"], [17, 21, "LOC"]],
        [{"start": 0, "end": 1, "label": "PER"}],
    ]
)


def separated(comma: str) -> bytes:
    """The records as CSV or TSV."""

    def cell(value: object) -> str:
        return str(value) if comma == "\t" else '"' + str(value).replace('"', '""') + '"'

    rows: list[list[object]] = [list(RECORDS[0]), *([*record.values()] for record in RECORDS)]
    return "\n".join(comma.join(map(cell, row)) for row in rows).encode() + b"\n"


def parquet_file() -> bytes:
    """The records as Parquet."""
    file = BytesIO()
    parquet.write_table(pa.Table.from_pylist(RECORDS), file)
    return file.getvalue()


_PARAGRAPH = "We train an encoder on unlabelled text of the domain, and it helps."
S2ORC_2020 = (
    lines(
        [
            {
                "paper_id": "77",
                "abstract": [{"text": _PARAGRAPH, "section": "Abstract"}],
                "body_text": [{"text": _PARAGRAPH}, {"text": "Short."}],
            },
            {"paper_id": "78", "abstract": [], "body_text": [{"text": _PARAGRAPH * 3}]},
        ]
    ),
    lines(
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
S2AG = (
    lines(
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
    lines(
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
PES2O = (
    lines(
        [
            {"id": "1", "text": f"{_PARAGRAPH}\n\n{_PARAGRAPH}", "source": "s2orc", "created": "x"},
            {"id": 2, "text": "A title\n" + _PARAGRAPH, "version": "v3"},
        ]
    ),
    lines([{"text": _PARAGRAPH}]),
)
TEXT = (
    f"{_PARAGRAPH}\n{_PARAGRAPH}\n\n{_PARAGRAPH}\n".encode(),
    f"{_PARAGRAPH}\r\nزمان و زبان در این متن بلند نوشته شده است\r\n".encode(),
    f"{_PARAGRAPH}\n{_PARAGRAPH}\n".encode("utf-16"),
    gzip.compress(f"{_PARAGRAPH}\n{_PARAGRAPH}\n".encode(), mtime=0),
)
CONFIG = (
    b"train: a/train.jsonl\ndev: a/dev.jsonl\ntext: body\nlabel: y\nmodel: roberta-base\n"
    b"space: td\nweighter: factored\nset: {factored: {lr: 0.5, n: 3}, mask: {rate: 1e-1}}\n"
    b"seed: 3\nsteps: 10\nlr: 1e-4\nprecision: fp32\nmeta-every: 2\nlog: [tensorboard]\n",
    b"dataset: glue:rte\ntext-pair: hypothesis\nrecipe: tapt\nout: runs/x\ndomain: [a.txt, b.gz]\n",
    b"train: a.csv\naux_task: {wnli: b.tsv, mrpc: c.jsonl}\ntarget: wnli\nspace: aux-tasks\n",
)
SETTINGS = (
    b"factored.lr=0.5\nmask.rate=0.3\nwnli.text_pair=premise\ns2orc.field='Computer Science'\n"
    b"wnli=wnli/train.tsv\nother-task=x.csv",
    b"factored.n=3\nstatic.end_task_weight=0.5\na.b=[1, {c: d}]\nx:y.z=~\nmrpc=b.jsonl",
)
COMPARISON = (
    b"tasks:\n  acl: {train: acl/train.jsonl, test: acl/test.jsonl}\n  demo: {}\n"
    b"methods:\n  plain: {weighter: single-task}\n  tapt: {recipe: tapt}\n"
    b"  aang: {space: td, weighter: factored, set: {factored: {n: 3}}}\n"
    b"seeds: [0, 1]\nbaseline: plain\noptions: {steps: 3, lr: 1e-3}\n"
    b"grid: {lr: [1e-4, 1e-3], factored.lr: [0.1, 1.0]}\n",
    b"tasks: {a: {train: x.csv}}\nmethods: {m: {weighter: factored}}\ngrid: paper-td\n",
)
SPACE = (
    b"name: mine\nsummary: what it is for\ndata: [task]\ntransform: [bert-op, mask: {rate: 0.2}]\n"
    b"representation:\n  - bidirectional\n  - random-factorized\noutput: [denoise, end-task]\n"
    b"exclude: [task/mask/bidirectional/end-task]\n",
    b"name: two+\ndata: [task, s2orc]\ntransform: [no-op]\nrepresentation: [left-to-right]\n"
    b"output: ['aang-plugin-bert:denoise', tf-idf]\n",
)
OBJECTIVE = (b"task/mask/bidirectional/denoise", b"elmo", b"td", b"aang-core:td", b"tapt")
