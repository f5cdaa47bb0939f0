"""Texts without end: the same from any place on."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from aang_plugin_s2orc.endless import EndlessTexts
from aang_plugin_s2orc.source import S2orc
from pyarrow import parquet

from aang_core import ConfigError, DataContext, DataError

from .events import GONE, NOT_JSON


def stream(place: Path, **options: Any) -> tuple[EndlessTexts, DataContext]:
    context = DataContext(train=(), domain=[place])
    return S2orc(stream=True, min_length=0, **options).stream(context), context


def take(n: int, texts: EndlessTexts) -> list[str]:
    return [next(texts).text for _ in range(n)]


def papers(*keys: str) -> str:
    """Full texts, each of as many paragraphs as its key has letters."""
    records = (
        {"paper_id": k, "body_text": [{"text": f"{k}{i}"} for i in range(len(k))]} for k in keys
    )
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Files of every kind, with some that is left out."""
    (tmp_path / "a.jsonl.gz").write_bytes(
        gzip.compress(f"{papers('a', 'aaa')}broken\n{papers('aa')}".encode())
    )
    (tmp_path / "b.jsonl").write_text(papers("b", "bb", "b"), encoding="utf-8")
    (tmp_path / "c.txt").write_text("c0\n\nc1\nc2\n", encoding="utf-8")
    parquet.write_table(pyarrow.table({"text": ["d0", None, "d1"]}), tmp_path / "d.parquet")
    lines = [{"paper_id": "a", "title": "t", "abstract": "e0"}, {"paper_id": "z", "title": "t"}]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return tmp_path


PASS = [
    *("a0", "aaa0", "aaa1", "aaa2", "aa0", "aa1"),
    *("b0", "bb0", "bb1", "b0"),
    *("c0", "c1", "c2", "d0", "d1"),
]


def test_pass_after_pass(corpus: Path) -> None:
    texts, context = stream(corpus)
    assert take(45, texts) == PASS * 3
    # Of each file, faults of the first reading count.
    assert context.report.counts == {
        NOT_JSON: 1,
        "row without a text, skipped": 1,
    }
    assert any("titles and abstracts are left out" in line for line in context.report.lines())


def test_metadata_alone_gives_abstracts_and_titles(corpus: Path) -> None:
    assert take(4, stream(corpus / "e.jsonl")[0]) == ["e0", "t", "e0", "t"]


@pytest.mark.parametrize("interleave", [1, 2, 3, 9])
def test_it_goes_on_from_anywhere(corpus: Path, interleave: int) -> None:
    whole = take(60, stream(corpus, interleave=interleave)[0])
    assert sorted(whole[:15]) == sorted(PASS)
    for stopped in range(40):
        first, _ = stream(corpus, interleave=interleave)
        take(stopped, first)
        # What a checkpoint holds has been written as JSON.
        position = json.loads(json.dumps(first.state_dict()))
        second, _ = stream(corpus, interleave=interleave)
        second.load_state_dict(position)
        assert take(20, second) == whole[stopped : stopped + 20]
        assert take(20, first) == whole[stopped : stopped + 20]


def test_files_that_come_and_go_between(corpus: Path) -> None:
    first, _ = stream(corpus, interleave=2)
    assert take(3, first) == ["a0", "b0", "aaa0"]
    (corpus / "b.jsonl").unlink()
    (corpus / "bb.txt").write_text("new\n", encoding="utf-8")
    second, context = stream(corpus, interleave=2)
    second.load_state_dict(first.state_dict())
    assert take(10, second) == ["aaa1", "aaa2", "aa0", "aa1", "new", "c0", "d0", "c1", "d1", "c2"]
    assert GONE not in context.report.counts


def test_a_pass_that_gave_a_text_is_not_without_one(tmp_path: Path) -> None:
    """Even if the file with that text has gone since, and nothing is left but the next pass."""
    (tmp_path / "a.txt").write_text("old\n", encoding="utf-8")
    first, _ = stream(tmp_path)
    assert take(1, first) == ["old"]
    (tmp_path / "a.txt").rename(tmp_path / "0.txt")
    second, _ = stream(tmp_path)
    second.load_state_dict(first.state_dict())
    assert take(2, second) == ["old", "old"]


def test_filters(corpus: Path) -> None:
    lines = [
        {"paper_id": "aaa", "title": "t", "year": 2001},
        {"paper_id": "b", "title": "t", "year": 1999},
    ]
    (corpus / "e.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert take(6, stream(corpus, years=2001)[0]) == ["aaa0", "aaa1", "aaa2"] * 2
    with pytest.raises(DataError, match="most frequent years there are: 2001"):
        stream(corpus, years=2010)


def test_a_pass_without_a_text_is_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"paper_id": "1", "body_text": []}\n[]\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"no usable text in .*not a JSON object"):
        next(stream(tmp_path)[0])


def test_all_files_vanish_while_it_runs(corpus: Path) -> None:
    texts, context = stream(corpus)
    take(3, texts)
    for path in corpus.iterdir():
        path.unlink()
    # The file that is open is read to its end.
    assert take(3, texts) == ["aaa2", "aa0", "aa1"]
    with pytest.raises(DataError, match="3 × file that cannot be read"):
        list(islice(iter(lambda: next(texts), None), 20))
    assert context.report.counts[GONE] == 3


def test_options_that_contradict_it() -> None:
    with pytest.raises(ConfigError, match=r"^s2orc\.limit is given"):
        S2orc(stream=True, limit=3)
    with pytest.raises(ConfigError, match=r"^s2orc\.stream is 'yes'"):
        S2orc(stream="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^s2orc\.buffer is 1"):
        S2orc(buffer=1)
