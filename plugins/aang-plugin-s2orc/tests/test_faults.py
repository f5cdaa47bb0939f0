"""Damaged files, wrong options and odd paths: counted or named, never a traceback."""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aang_plugin_s2orc.source import S2orc
from hypothesis import given, settings
from hypothesis import strategies as st

from aang_core import ConfigError, DataContext, DataError, ReadReport

from .events import CUT_OFF, GONE, NOT_JSON, NOT_UTF8, SEEN_BEFORE, SHORT

LONG = "is a paragraph of more than twenty characters"


def read(*places: Path, **options: Any) -> tuple[list[str], ReadReport]:
    context = DataContext(train=(), domain=places)
    return [e.text for e in S2orc(**options).examples(context)], context.report


def parse(paper_id: object, *texts: object) -> str:
    body = [{"text": text} for text in texts]
    return json.dumps({"paper_id": paper_id, "abstract": None, "body_text": body})


def test_faulty_lines_are_counted_with_the_place_of_the_first(tmp_path: Path) -> None:
    lines = [
        parse("1", f"One {LONG}", None, "", 7),
        '{"paper_id": "2", "body_text": [{"text": "cut o',
        "[1, 2]",
        '{"something": "else"}',
        parse("1", f"again {LONG}"),
        parse(None, f"nameless {LONG}"),
        '{"paper_id": "3", "body_text": "not a list"}',
        '{"paper_id": "4", "body_text": [null, "x"]}',
        '{"paper_id": "5", "title": "only metadata", "abstract": null}',
        "",
        parse(6, f"Six {LONG}"),
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    texts, report = read(path)
    assert texts == [f"One {LONG}", f"Six {LONG}"]
    assert report.counts == Counter(
        {
            "paragraph without text, skipped": 5,
            NOT_JSON: 2,
            'record without "text" or the fields of a paper, skipped': 1,
            SEEN_BEFORE: 1,
            "record without an id, skipped": 1,
            "paragraphs that are not a list, skipped": 1,
            "metadata among full texts, skipped": 1,
        }
    )
    assert report.first[NOT_JSON] == f"{path}:2"
    assert report.first[SEEN_BEFORE] == f"{path}:5"


def test_a_gzip_file_that_was_cut_off_gives_what_is_left(tmp_path: Path) -> None:
    lines = "\n".join(parse(str(i), f"{i} {LONG} {i * 7919**5}") for i in range(2000))
    whole = gzip.compress(lines.encode())
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    texts, report = read(path)
    assert 100 < len(texts) < 2000
    (event,) = report.counts
    assert event == CUT_OFF
    place, _, line = report.first[event].rpartition(":")
    assert place == str(path)
    assert int(line) == len(texts)
    # All of it that can be unpacked, but for the line that the cut goes through.
    left = zlib.decompressobj(wbits=31).decompress(path.read_bytes())
    assert len(texts) == left.count(b"\n")


def test_a_gzip_file_under_another_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "20230101_000_shard"
    path.write_bytes(gzip.compress(parse("1", LONG).encode()))
    assert read(path)[0] == [LONG]


def test_lines_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"One {LONG}\n".encode() + b"caf\xe9 " * 9 + f"\nTwo {LONG}".encode())
    texts, report = read(path)
    assert texts == [f"One {LONG}", f"Two {LONG}"]
    assert report.first == {NOT_UTF8: f"{path}:2"}


def test_a_folder_with_other_things_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LONG, encoding="utf-8")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")
    (tmp_path / "image.gz").write_bytes(gzip.compress(b"\x00\x01" * 50))
    (tmp_path / ".hidden.txt").write_text(f"hidden {LONG}", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "b.txt").write_text(f"hidden {LONG}", encoding="utf-8")
    (tmp_path / "info.json").write_text('{\n  "name": "corpus"\n}', encoding="utf-8")
    texts, report = read(tmp_path)
    assert texts == [LONG]
    assert report.counts["file of another type in a folder, skipped"] == 2
    assert report.counts["file that is not text, skipped"] == 1
    assert report.counts[NOT_JSON] == 3


def test_a_named_file_is_read_whatever_its_extension(tmp_path: Path) -> None:
    path = tmp_path / "notes [1].md"
    path.write_text(LONG, encoding="utf-8")
    assert read(path)[0] == [LONG]


def test_no_domain() -> None:
    with pytest.raises(DataError, match="--domain"):
        S2orc().examples(DataContext(train=()))


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read(tmp_path / "nope")
    with pytest.raises(DataError, match="matches no file"):
        read(tmp_path / "*.txt")
    with pytest.raises(DataError, match=r"no \.jsonl"):
        read(tmp_path)


@pytest.mark.parametrize("content", ["", "\n\n", "short\n", '{"paper_id": 1, "body_text": []}'])
def test_files_without_a_usable_text(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"no usable text in .*a\.txt"):
        read(path)


def test_what_was_met_in_other_data_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("short\n", encoding="utf-8")
    report = ReadReport()
    report.add("text longer than 64 tokens, cut", "train.jsonl:7")
    report.note("2 of 24 examples split off as the dev set")
    with pytest.raises(DataError) as told:
        list(S2orc().examples(DataContext(train=(), domain=[path], report=report)))
    faults = f"1 × {SHORT} (first: {path}:1)"
    assert str(told.value) == f"no usable text in {path}: {faults}."


def test_limit_and_shortest_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo two\nthree three three\n", encoding="utf-8")
    assert read(path, min_length=5)[0] == ["two two", "three three three"]
    assert read(path, min_length=0, limit=2)[0] == ["one", "two two"]


def test_texts_come_as_they_are_asked_for(tmp_path: Path) -> None:
    """The first text of a shard is there before the rest of it has been read."""
    path = tmp_path / "a.jsonl"
    lines = [parse(str(i), f"{i} {LONG}") for i in range(10_000)]
    path.write_text("\n".join([*lines, "broken"]), encoding="utf-8")
    context = DataContext(train=(), domain=[path])
    texts = iter(S2orc().examples(context))
    assert next(texts).text == f"0 {LONG}"
    assert not context.report.counts
    assert sum(1 for _ in texts) == 9_999
    assert sum(context.report.counts.values()) == 1


def shards(folder: Path, n: int, papers: int) -> None:
    """Shards 0 to n, papers ``shard.paper`` with a text each."""
    for i in range(n):
        lines = "\n".join(parse(f"{i}.{j}", f"{i}.{j} {LONG}") for j in range(papers))
        (folder / f"shard_{i}.jsonl").write_text(lines, encoding="utf-8")


def names(texts: Iterable[str]) -> list[str]:
    return [text.removesuffix(f" {LONG}") for text in texts]


def test_several_files_in_turn(tmp_path: Path) -> None:
    shards(tmp_path, 5, 2)
    assert names(read(tmp_path, interleave=2)[0]) == [
        *("0.0", "1.0", "0.1", "1.1"),
        *("2.0", "3.0", "2.1", "3.1"),
        *("4.0", "4.1"),
    ]
    (tmp_path / "shard_0.jsonl").write_text(parse("0.0", f"0.0 {LONG}"), encoding="utf-8")
    # In place of a file that has ended the next one is read, behind the others.
    texts = names(read(tmp_path, interleave=3)[0])
    assert texts == ["0.0", "1.0", "2.0", "1.1", "2.1", "3.0", "3.1", "4.0", "4.1"]
    assert sorted(read(tmp_path, interleave=99)[0]) == read(tmp_path)[0]
    assert names(read(tmp_path, interleave=4, limit=4)[0]) == ["0.0", "1.0", "2.0", "3.0"]


def test_faults_are_told_of_each_of_several_files(tmp_path: Path) -> None:
    shards(tmp_path, 4, 300)
    broken = tmp_path / "shard_1.jsonl"
    lines = broken.read_text(encoding="utf-8").splitlines()
    broken.write_text("\n".join([*lines[:100], '{"paper_id": "1', *lines[101:]]), encoding="utf-8")
    cut = tmp_path / "shard_2.jsonl"
    whole = gzip.compress(cut.read_bytes())
    cut.write_bytes(whole[: len(whole) // 2])
    texts, report = read(tmp_path, interleave=3)
    assert report.counts == {
        NOT_JSON: 1,
        CUT_OFF: 1,
    }
    assert report.first[NOT_JSON] == f"{broken}:101"
    assert report.first[CUT_OFF].startswith(f"{cut}:")
    of_shard = Counter(name.partition(".")[0] for name in names(texts))
    assert of_shard == {"0": 300, "1": 299, "2": of_shard["2"], "3": 300}
    assert 0 < of_shard["2"] < 300


@pytest.mark.parametrize("interleave", [1, 2, 5])
def test_a_shard_that_vanishes_before_its_turn(tmp_path: Path, interleave: int) -> None:
    """The others are read, and the missing one is reported."""
    shards(tmp_path, 5, 2)
    context = DataContext(train=(), domain=[tmp_path])
    examples = iter(S2orc(interleave=interleave).examples(context))
    first = next(examples).text
    (tmp_path / "shard_4.jsonl").unlink()
    (tmp_path / "shard_3.jsonl").rename(tmp_path / "elsewhere")
    texts = names([first, *(example.text for example in examples)])
    event = GONE
    assert sorted(texts) == [f"{i}.{j}" for i in range(3) for j in range(2)]
    assert context.report.counts == {event: 2}
    assert context.report.first[event] == str(tmp_path / "shard_3.jsonl")


def test_metadata_that_vanishes_between_two_readings_of_it(tmp_path: Path) -> None:
    """Papers chosen by it stay chosen; its abstracts are missing, which is reported."""
    (tmp_path / "parses").mkdir()
    shards(tmp_path / "parses", 1, 2)
    records = [{"paper_id": f"0.{i}", "title": f"Title {i} {LONG}", "year": 2010} for i in range(3)]
    metadata = tmp_path / "metadata.jsonl"
    metadata.write_text("\n".join([*map(json.dumps, records), "broken"]), encoding="utf-8")
    whole, report = read(tmp_path, years=2010)
    assert names(whole) == ["0.0", "0.1", "Title 2"]
    assert report.counts == {NOT_JSON: 1}
    context = DataContext(train=(), domain=[tmp_path])
    examples = iter(S2orc(years=2010).examples(context))
    first = next(examples).text
    metadata.unlink()
    assert [first, *(example.text for example in examples)] == whole[:2]
    assert context.report.counts == {
        NOT_JSON: 1,
        GONE: 1,
    }


def test_all_shards_vanish(tmp_path: Path) -> None:
    shards(tmp_path, 3, 2)
    context = DataContext(train=(), domain=[tmp_path])
    examples = S2orc().examples(context)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"shard_0.* 2 more files: 3 × file that cannot be read"):
        list(examples)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that fails")
def test_a_file_that_fails_while_it_is_read(tmp_path: Path) -> None:
    """The first page of a process's memory gives an error of input and output."""
    shards(tmp_path, 1, 2)
    (tmp_path / "broken.jsonl").symlink_to("/proc/self/mem")
    texts, report = read(tmp_path)
    assert names(texts) == ["0.0", "0.1"]
    assert report.counts == {"file that cannot be read (Input/output error), skipped": 1}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"limit": 0}, "s2orc.limit is 0"),
        ({"limit": "ten"}, "s2orc.limit is 'ten'"),
        ({"limit": True}, "s2orc.limit is True"),
        ({"min_length": -1}, "s2orc.min_length is -1"),
        ({"max_length": 0}, "s2orc.max_length is 0"),
        ({"interleave": 0}, "s2orc.interleave is 0"),
        ({"field": ""}, "s2orc.field is ''"),
        ({"field": 3}, "s2orc.field is 3"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        S2orc(**options)
    assert str(caught.value).startswith(named)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "start", "end", "paragraph", "abstract", "annotations"]), inner
        )
    ),
    max_leaves=8,
)
RECORDS = st.dictionaries(
    st.sampled_from(
        [
            "paper_id",
            "corpusid",
            "id",
            "text",
            "title",
            "abstract",
            "body_text",
            "content",
            "body",
            "mag_field_of_study",
            "s2fieldsofstudy",
        ]
    ),
    JSON,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


ANY_RECORDS = given(records=st.lists(RECORDS, max_size=4), field=st.sampled_from([None, "Art"]))


@ANY_RECORDS
@settings(max_examples=40, deadline=None)
def test_any_records_give_texts_or_a_data_error(
    folder: Path, records: list[dict[str, object]], field: str | None
) -> None:
    _texts_or_data_error_of(folder, records, field)


@pytest.mark.full
@ANY_RECORDS
@settings(max_examples=150, deadline=None)
def test_any_of_many_records_give_texts_or_a_data_error(
    folder: Path, records: list[dict[str, object]], field: str | None
) -> None:
    _texts_or_data_error_of(folder, records, field)


def _texts_or_data_error_of(
    folder: Path, records: list[dict[str, object]], field: str | None
) -> None:
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    _texts_or_data_error(path, field=field, min_length=0)


@given(content=st.binary(max_size=120) | st.binary(max_size=60).map(gzip.compress))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_texts_or_a_data_error(folder: Path, content: bytes) -> None:
    path = folder / "a.bin"
    path.write_bytes(content)
    _texts_or_data_error(path, min_length=0)


def _texts_or_data_error(path: Path, **options: Any) -> None:
    try:
        texts, _ = read(path, **options)
    except DataError:
        return
    assert texts
    assert all(text.strip() for text in texts)
