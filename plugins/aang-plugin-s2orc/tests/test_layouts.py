"""Each layout as it is published, and what it may lack."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aang_plugin_s2orc.source import S2orc

from aang_core import DataContext, DataError

from .events import SEEN_BEFORE, SHORT, WITHOUT_FIELD

LONG = "is a paragraph of more than twenty characters"


def read(*places: Path, **options: Any) -> tuple[list[str], Counter[str]]:
    """The texts, and what had to be counted."""
    context = DataContext(train=(), domain=places)
    texts = [example.text for example in S2orc(**options).examples(context)]
    return texts, context.report.counts


def write(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def parse(paper_id: str, abstract: list[str], body: list[str]) -> dict[str, object]:
    def paragraphs(texts: list[str]) -> list[dict[str, object]]:
        return [{"section": "1", "text": text, "cite_spans": [], "ref_spans": []} for text in texts]

    return {
        "paper_id": paper_id,
        "_pdf_hash": "x",
        "abstract": paragraphs(abstract),
        "body_text": paragraphs(body),
        "bib_entries": {},
        "ref_entries": {},
    }


def about(paper_id: str, title: str, abstract: str | None, *fields: str) -> dict[str, object]:
    return {
        "paper_id": paper_id,
        "title": title,
        "abstract": abstract,
        "mag_field_of_study": list(fields) or None,
        "has_pdf_parse": True,
    }


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small release in the layout of 20200705v1: four papers, three of them parsed."""
    write(
        tmp_path / "metadata" / "metadata_0.jsonl",
        about("1", f"Title 1 {LONG}", f"Abstract 1 {LONG}", "Computer Science"),
        about("2", f"Title 2 {LONG}", f"Abstract 2 {LONG}", "Computer Science", "Biology"),
        about("3", f"Title 3 {LONG}", None, "Biology"),
        about("4", f"Title 4 {LONG}", f"Abstract 4 {LONG}"),
        about("5", f"Title 5 {LONG}", None, "Computer Science"),
    )
    write(
        tmp_path / "pdf_parses" / "pdf_parses_0.jsonl",
        parse("1", [f"Parsed abstract 1 {LONG}"], [f"Body 1a {LONG}", f"Body 1b {LONG}"]),
        parse("2", [], [f"Body 2 {LONG}"]),
        parse("3", [], []),
    )
    return tmp_path


def shortened(texts: list[str]) -> list[str]:
    return [text.removesuffix(f" {LONG}") for text in texts]


def test_metadata_and_full_texts_are_joined(release: Path) -> None:
    texts, counts = read(release)
    assert shortened(texts) == [
        "Parsed abstract 1",
        "Body 1a",
        "Body 1b",
        "Body 2",
        # Papers 2 and 3 have a full text without an abstract, 4 and 5 have no full text here.
        "Abstract 2",
        "Abstract 4",
        "Title 5",
    ]
    assert not counts


@pytest.mark.parametrize("field", ["Computer Science", "computer science "])
def test_a_field_of_study(release: Path, field: str) -> None:
    texts, _ = read(release, field=field)
    assert shortened(texts) == [
        "Parsed abstract 1",
        "Body 1a",
        "Body 1b",
        "Body 2",
        "Abstract 2",
        "Title 5",
    ]


def test_a_field_that_nothing_is_in(release: Path) -> None:
    with pytest.raises(DataError, match=r"'Law'.*Computer Science \(3\), Biology \(2\)"):
        read(release, field="Law")


def test_a_field_without_metadata(release: Path) -> None:
    with pytest.raises(DataError, match="no record names its fields"):
        read(release / "pdf_parses", field="Biology")


def test_either_directory_alone(release: Path) -> None:
    texts, _ = read(release / "pdf_parses")
    assert shortened(texts) == ["Parsed abstract 1", "Body 1a", "Body 1b", "Body 2"]
    texts, _ = read(release / "metadata")
    assert shortened(texts) == ["Abstract 1", "Abstract 2", "Title 3", "Abstract 4", "Title 5"]


def test_the_order_of_arguments_and_their_names_do_not_matter(release: Path) -> None:
    whole = read(release)
    assert read(release / "pdf_parses", release / "metadata") == whole
    assert read(release / "metadata", release, release / "*" / "*.jsonl") == whole
    # Recognised by content: the two directories trade names.
    (release / "metadata").rename(release / "other")
    (release / "pdf_parses").rename(release / "metadata")
    assert read(release)[0] == whole[0]


def spans(text: str, *parts: str) -> str:
    return json.dumps([{"start": text.index(p), "end": text.index(p) + len(p)} for p in parts])


S2AG_TEXT = f"Title\nAbstract {LONG}.\n1 Intro\nFirst {LONG}\nof two lines.\nSecond {LONG}."
ABSTRACT, FIRST, SECOND = (
    f"Abstract {LONG}.",
    f"First {LONG}\nof two lines.",
    f"Second {LONG}.",
)


def s2ag(annotations: object, text: str | None = S2AG_TEXT, key: str = "content") -> dict[str, Any]:
    return {
        "corpusid": 17,
        "externalids": {"doi": None},
        key: {"source": {"pdfurls": None}, "text": text, "annotations": annotations},
    }


@pytest.mark.parametrize("key", ["content", "body"])
def test_s2ag_paragraphs_by_annotation(tmp_path: Path, key: str) -> None:
    annotations = {
        "abstract": spans(S2AG_TEXT, ABSTRACT),
        "paragraph": spans(S2AG_TEXT, SECOND, FIRST),
        "formula": None,
    }
    path = write(tmp_path / "a.jsonl", s2ag(annotations, key=key))
    assert read(path) == ([ABSTRACT, FIRST, SECOND], {})


def test_an_abstract_that_is_a_paragraph_too_comes_once(tmp_path: Path) -> None:
    annotations = {
        "abstract": spans(S2AG_TEXT, ABSTRACT),
        "paragraph": spans(S2AG_TEXT, ABSTRACT, FIRST),
    }
    assert read(write(tmp_path / "a.jsonl", s2ag(annotations)))[0] == [ABSTRACT, FIRST]


@pytest.mark.parametrize("annotations", [None, {}, {"paragraph": None}, {"paragraph": "[]"}])
def test_s2ag_without_annotations_is_split_at_blank_lines(
    tmp_path: Path, annotations: object
) -> None:
    text = f"One {LONG}\ngoes on.\n \n\nTwo {LONG}."
    path = write(tmp_path / "a.jsonl", s2ag(annotations, text))
    assert read(path) == ([f"One {LONG}\ngoes on.", f"Two {LONG}."], {})


@pytest.mark.parametrize(
    ("paragraph", "fault"),
    [
        ('[{"start": 0, "end": 9999}]', "annotation outside the text, ignored"),
        ('[{"start": -3, "end": 20}]', "annotation outside the text, ignored"),
        ('[{"start": 9, "end": 5}]', "annotation outside the text, ignored"),
        ('[{"start": null, "end": 5}, 3, {}]', "annotation outside the text, ignored"),
        ("[{", "annotation that is not JSON, ignored"),
    ],
)
def test_faulty_annotations(tmp_path: Path, paragraph: str, fault: str) -> None:
    path = write(tmp_path / "a.jsonl", s2ag({"paragraph": paragraph}))
    texts, counts = read(path)
    assert texts == [S2AG_TEXT]
    assert set(counts) == {fault}


def test_s2ag_metadata_is_joined_on_the_corpus_id(tmp_path: Path) -> None:
    category = {"category": "Medicine", "source": "external"}
    write(
        tmp_path / "papers.jsonl",
        {"corpusid": 17, "title": f"Title {LONG}", "s2fieldsofstudy": [category, category]},
        {"corpusid": 18, "title": f"Title 18 {LONG}", "s2fieldsofstudy": None},
    )
    write(tmp_path / "abstracts.jsonl", {"corpusid": 17, "abstract": ABSTRACT})
    write(tmp_path / "s2orc.jsonl", s2ag({"paragraph": spans(S2AG_TEXT, FIRST)}))
    # The abstract's record says nothing of fields, and is not counted for it.
    assert read(tmp_path, field="medicine") == (
        [FIRST, ABSTRACT],
        {WITHOUT_FIELD: 1},
    )
    with pytest.raises(DataError, match=r"Medicine \(1\)"):
        read(tmp_path, field="Art")


def test_pes2o(tmp_path: Path) -> None:
    record = {
        "added": "2023-01-01",
        "id": "18980380",
        "source": "s2orc/train",
        "text": f"A title that is long enough\n\nOne {LONG}\n\nTwo {LONG}",
        "version": "v2",
    }
    path = write(tmp_path / "train-00000-of-00020.json", record, record, {"text": f"x {LONG}"})
    texts, counts = read(path)
    assert texts == ["A title that is long enough", f"One {LONG}", f"Two {LONG}", f"x {LONG}"]
    assert counts == {SEEN_BEFORE: 1}


def test_plain_records_of_files_that_each_count_from_nothing(tmp_path: Path) -> None:
    """They differ in their texts; a record that is identical comes once."""
    write(tmp_path / "a.jsonl", *({"id": i, "text": f"a{i} {LONG}"} for i in range(3)))
    first = {"id": 0, "text": f"a0 {LONG}"}
    write(tmp_path / "b.jsonl", first, *({"id": i, "text": f"b{i} {LONG}"} for i in range(3)))
    texts, counts = read(tmp_path)
    assert texts == [f"{name}{i} {LONG}" for name in "ab" for i in range(3)]
    assert counts == {SEEN_BEFORE: 1}


def test_pes2o_leaves_out_the_titles_of_its_papers(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", *({"corpusid": i, "title": f"Title {i} {LONG}"} for i in (5, 6)))
    write(tmp_path / "a.jsonl", {"id": "5", "text": LONG})
    assert read(tmp_path)[0] == [LONG, f"Title 6 {LONG}"]


def test_pes2o_finds_its_fields_in_the_metadata(tmp_path: Path) -> None:
    field = [{"category": "Art", "source": "external"}]
    write(tmp_path / "b.jsonl", {"corpusid": 5, "title": "x", "s2fieldsofstudy": field})
    write(tmp_path / "a.jsonl", {"id": "5", "text": LONG}, {"id": "6", "text": f"{LONG} 6"})
    assert read(tmp_path, field="Art")[0] == [LONG]


def test_plain_text_is_one_text_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"\ufeffOne {LONG}\r\n\r\n  {{Two}} {LONG}\nshort\n[3] {LONG}".encode())
    texts, counts = read(path)
    assert texts == [f"One {LONG}", f"{{Two}} {LONG}", f"[3] {LONG}"]
    assert counts == {SHORT: 1}


TABLES = {
    "a.csv": f'id,text\n1,"One, {LONG}"\n2,"Two\n{LONG}"\n3,\n',
    "a.tsv": f'text\tid\nOne, {LONG}\t1\nTwo "{LONG}\t2\n',
    "a.JSON": json.dumps([{"text": f"One {LONG}"}, {"id": 5}, {"text": f"Two {LONG}"}], indent=1),
    "b.json": json.dumps([{"text": f"One {LONG}"}, {"text": f"Two {LONG}"}]),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path: Path, name: str, *, zipped: bool) -> None:
    """The column of texts and nothing else; of an array, every record."""
    content = TABLES[name].encode()
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(content) if zipped else content)
    texts, counts = read(path)
    assert [text[:3] for text in texts] == ["One", "Two"]
    assert all(text.endswith(LONG) for text in texts)
    assert counts.total() == (name in ("a.csv", "a.JSON"))
    stream = S2orc(stream=True).stream(DataContext(train=(), domain=[path]))
    assert [next(stream).text for _ in range(4)] == texts * 2


def test_a_table_without_a_column_of_texts(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", {"text": LONG})
    path = tmp_path / "a.csv"
    path.write_text(f"title,body\nx,{LONG}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.csv: has no column 'text'.*'title', 'body'.*\.txt"):
        S2orc().examples(DataContext(train=(), domain=[tmp_path / "b.jsonl", path]))
    path = write(tmp_path / "c.json", [{"title": "x", "body": LONG}])
    with pytest.raises(DataError, match=r"c\.json: 1 × row without a text, skipped"):
        read(path)


def test_a_table_with_a_broken_row(tmp_path: Path) -> None:
    """What comes before it is read, and where it broke is told."""
    path = tmp_path / "a.csv"
    path.write_text(f"id,text\n1,One {LONG}\n2,Two, {LONG}\n3,Three {LONG}\n", encoding="utf-8")
    context = DataContext(train=(), domain=[path])
    assert [example.text for example in S2orc().examples(context)] == [f"One {LONG}"]
    (line,) = context.report.lines()
    assert line.startswith("1 × table damaged or cut off, rest skipped")
    assert "a.csv:3: 3 fields, but the header has 2 columns" in line


def test_text_files_have_no_field(release: Path) -> None:
    (release / "notes.txt").write_text(f"A note {LONG}\n", encoding="utf-8")
    texts, counts = read(release, field="Biology")
    assert f"A note {LONG}" not in texts
    assert counts == {
        WITHOUT_FIELD: 1,
        "text file, which knows no field of study, year or abstract, skipped": 1,
    }
    assert f"A note {LONG}" in read(release)[0]
