"""Files from scratch, by hypothesis: values of every kind in the form that a target reads."""

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pyarrow as pa
from aang.config import TrainConfig
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from pyarrow import parquet

from benchmarks.fuzzing.mutate import TOKENS
from benchmarks.fuzzing.targets import Target

_TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(["a", "b", "x y", "1.0", "td", "mask"]))
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), _TEXTS, st.sampled_from(["a", "b"])
)
_KEYS = st.one_of(
    *(
        st.sampled_from(["text", "label", "train", "set", "tasks", "methods", "data", "grid"]),
        _TEXTS,
    ),
    *(st.sampled_from(["paper_id", "body_text", "abstract", "corpusid", "content", "id", "text"]),),
    *(st.sampled_from(["name", "transform", "output", "representation", "seeds", "options"]),),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)
_EXAMPLE = st.fixed_dictionaries({"text": _TEXTS, "label": st.sampled_from(["a", "b", "c"])})
_PAPER = st.one_of(
    *(
        st.fixed_dictionaries(
            {name: st.one_of(st.just(7), _SCALARS)},
            optional={
                "text": _TEXTS,
                "title": _SCALARS,
                "abstract": _VALUES,
                "body_text": st.one_of(st.lists(st.fixed_dictionaries({"text": _TEXTS})), _VALUES),
                "content": st.one_of(st.fixed_dictionaries({"text": _TEXTS}), _VALUES),
                "s2fieldsofstudy": _VALUES,
                "mag_field_of_study": _VALUES,
            },
        )
        for name in ("paper_id", "corpusid", "id")
    )
)
_RECORDS = st.one_of(
    st.lists(_PAPER, max_size=6),
    st.lists(_EXAMPLE, max_size=12),
    st.lists(st.one_of(_EXAMPLE, st.dictionaries(_KEYS, _VALUES, max_size=5), _VALUES), max_size=9),
)
_PIECES = st.lists(
    st.one_of(
        st.sampled_from(TOKENS), st.binary(max_size=6), st.sampled_from([b"\n", b",", b"\t"])
    ),
    max_size=14,
).map(b"".join)
_DELIMITED = st.tuples(
    st.sampled_from([",", "\t"]),
    st.lists(st.tuples(_TEXTS, st.sampled_from(["a", "b"])), max_size=9),
).map(lambda drawn: _separated(*drawn))


def contents(
    name: str, target: Target, count: int, seed: int, take: Callable[[bytes], None]
) -> None:
    """Pass ``count`` files to ``take``, which must not raise."""

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(content=_strategy(name, target))
    def run(content: bytes) -> None:
        take(content)

    run()


def _strategy(name: str, target: Target) -> st.SearchStrategy[bytes]:
    forms: dict[str, st.SearchStrategy[bytes]] = {
        "json": st.one_of(_RECORDS.map(_json_lines), _VALUES.map(_json)),
        "yaml": _VALUES.map(_json),
        "parquet": _RECORDS.map(_parquet),
        "bytes": _DELIMITED,
    }
    made = st.one_of(*_OWN.get(name, ()), forms[target.kind], _PIECES)
    if name == "run-folder":
        names = st.sampled_from([content.partition(b"\n")[0] for content in target.seeds])
        made = st.tuples(names, made).map(b"\n".join)
    return made.map(lambda c: gzip.compress(c, mtime=0)) if target.file.endswith(".gz") else made


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json_lines(records: list[Any]) -> bytes:
    return b"\n".join(map(_json, records))


def _separated(comma: str, rows: list[tuple[str, str]]) -> bytes:
    lines = [f"text{comma}label", *(f"{text}{comma}{label}" for text, label in rows)]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _parquet(records: list[Any]) -> bytes:
    try:
        table = pa.Table.from_pylist([r for r in records if isinstance(r, dict)])
        file = BytesIO()
        parquet.write_table(table, file)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return b"PAR1PAR1"  # what was drawn has no type of its own
    return file.getvalue()


_NAMES = st.sampled_from(
    ["task", "s2orc", "mask", "no-op", "bidirectional", "left-to-right", "denoise", "end-task"]
)
_OPTIONS = st.dictionaries(
    st.one_of(st.sampled_from(sorted(TrainConfig.model_fields)), _KEYS), _VALUES, max_size=5
)
_LISTED = st.lists(st.one_of(_NAMES, st.dictionaries(_NAMES, _OPTIONS, max_size=1)), max_size=4)
_WORDS = st.lists(st.tuples(_TEXTS, st.sampled_from(["O", "B-X", "I-X", "X", "B-"])), max_size=6)
_PLACES = st.integers(min_value=-1, max_value=12)
_SPANS = st.lists(
    st.one_of(
        st.tuples(_PLACES, _PLACES, _TEXTS),
        st.fixed_dictionaries({"start": _PLACES, "end": _PLACES, "label": _SCALARS}),
    ),
    max_size=3,
)
_NUMBERS = st.one_of(st.floats(), st.integers(), st.floats().map(str))


def _labelled(labels: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    example = st.fixed_dictionaries({"text": _TEXTS, "label": labels})
    return st.lists(example, min_size=3, max_size=9)


def _in_columns(labels: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    rows = st.lists(st.tuples(_TEXTS, labels), min_size=3, max_size=9)
    return rows.map(lambda drawn: _separated(",", drawn))


_OWN: dict[str, tuple[st.SearchStrategy[bytes], ...]] = {
    "multi-label-jsonl": (_labelled(st.lists(st.sampled_from("abc"))).map(_json_lines),),
    "multi-label-csv": (_in_columns(st.lists(st.sampled_from("abc")).map("|".join)),),
    "regression-jsonl": (_labelled(_NUMBERS).map(_json_lines),),
    "regression-csv": (_in_columns(_NUMBERS.map(str)),),
    "token-labels-jsonl": (
        _labelled(_SPANS).map(_json_lines),
        st.lists(
            _WORDS.map(lambda w: {"text": [t for t, _ in w], "label": [tag for _, tag in w]})
        ).map(_json_lines),
    ),
    "token-labels-csv": (_in_columns(_WORDS.map(lambda words: " ".join(t for _, t in words))),),
    "config": (_OPTIONS.map(_json),),
    "set": (
        st.lists(st.tuples(_KEYS, _KEYS, _VALUES.map(_json))).map(
            lambda rows: b"\n".join(f"{n}.{o}=".encode("utf-8", "ignore") + v for n, o, v in rows)
        ),
    ),
    "comparison": (
        st.fixed_dictionaries(
            {
                "tasks": st.dictionaries(_TEXTS, _OPTIONS, max_size=3),
                "methods": st.dictionaries(_TEXTS, _OPTIONS, max_size=3),
            },
            optional={
                "seeds": st.one_of(st.lists(st.integers()), _VALUES),
                "baseline": _TEXTS,
                "options": _OPTIONS,
                "grid": st.one_of(st.dictionaries(_KEYS, st.lists(_SCALARS)), _VALUES),
            },
        ).map(_json),
    ),
    "space": (
        st.fixed_dictionaries(
            {"name": st.sampled_from(["x", "two+"]), "data": _LISTED, "transform": _LISTED}
            | {"representation": _LISTED, "output": _LISTED},
            optional={"exclude": _VALUES, "summary": _SCALARS},
        ).map(_json),
    ),
    "objective": (
        st.lists(st.one_of(_NAMES, _TEXTS), min_size=3, max_size=5).map(
            lambda parts: "/".join(parts).encode("utf-8", "ignore")
        ),
    ),
}
