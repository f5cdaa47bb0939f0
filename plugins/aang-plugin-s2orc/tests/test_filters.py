"""Which papers and texts are taken: years, language, length; and in which order."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aang_plugin_s2orc.source import S2orc

from aang_core import ConfigError, DataContext, DataError

from .events import WITHOUT_YEAR

ENGLISH = "We study how parsers of natural language learn from unlabelled sentences of a domain."
GERMAN = "Wir untersuchen, wie Parser natürlicher Sprache aus Sätzen ohne Annotation lernen können."
FRENCH = "Nous étudions comment les analyseurs apprennent à partir de phrases sans annotation."


def read(place: Path, **options: Any) -> tuple[list[str], Counter[str]]:
    """The texts, and what had to be counted."""
    context = DataContext(train=(), domain=[place])
    texts = [e.text for e in S2orc(min_length=0, **options).examples(context)]
    return texts, context.report.counts


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def about(key: str, abstract: str | None = None, **more: object) -> dict[str, object]:
    return {"paper_id": key, "title": f"Title {key}", "abstract": abstract, **more}


def parse(key: str, *body: str, abstract: str = "") -> dict[str, object]:
    return {
        "paper_id": key,
        "abstract": [{"text": abstract}] if abstract else [],
        "body_text": [{"text": text} for text in body],
    }


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    write(
        tmp_path / "metadata.jsonl",
        about("1", year=1999, mag_field_of_study=["Art"]),
        about("2", year=2010, mag_field_of_study=["Art"]),
        about("3", year="2015", mag_field_of_study=["Art"]),
        about("4", year=None, mag_field_of_study=["Art"]),
        about("5", mag_field_of_study=["Law"]),
        about("6", year=2010, mag_field_of_study=["Law"]),
    )
    write(tmp_path / "parses.jsonl", *(parse(key, f"Body {key}") for key in "124"))
    return tmp_path


@pytest.mark.parametrize(
    ("years", "found"),
    [
        ("2010-2020", ["Body 2", "Title 3", "Title 6"]),
        ("2010", ["Body 2", "Title 6"]),
        (2010, ["Body 2", "Title 6"]),
        ("2011-", ["Title 3"]),
        # An option of YAML, this is a number below zero.
        (-1999, ["Body 1"]),
        (" 1999 - 2014", ["Body 1", "Body 2", "Title 6"]),
    ],
)
def test_years(dated: Path, years: object, found: list[str]) -> None:
    texts, counts = read(dated, years=years)
    assert texts == found
    assert counts == {WITHOUT_YEAR: 2}


def test_years_of_a_field(dated: Path) -> None:
    texts, counts = read(dated, years="2000-", field="art")
    assert texts == ["Body 2", "Title 3"]
    assert counts == {WITHOUT_YEAR: 1}


def test_years_that_no_paper_is_of(dated: Path) -> None:
    with pytest.raises(
        DataError, match=r"years is '2016-', .*: 2010 \(2\), 1999 \(1\), 2015 \(1\)"
    ):
        read(dated, years="2016-")
    with pytest.raises(DataError, match=r"years there are: 1999 \(1\), 2010 \(1\), 2015 \(1\)\."):
        read(dated, years="2016-", field="Art")
    with pytest.raises(DataError, match=r"field is 'Music', .*Art \(4\), Law \(2\)"):
        read(dated, years="2016-", field="Music")
    with pytest.raises(DataError, match="no record names its year"):
        read(dated / "parses.jsonl", years="2010")


@pytest.mark.parametrize("years", ["", "-", "soon", "2010-12", "20-30", True, 3.5, "2010 2020", []])
def test_years_that_are_none(years: object) -> None:
    with pytest.raises(ConfigError, match=r"^s2orc\.years is .*2010-2020"):
        S2orc(years=years)  # type: ignore[arg-type]


def test_years_that_end_before_they_begin() -> None:
    with pytest.raises(ConfigError, match="ends before it begins"):
        S2orc(years="2020-2010")


def test_the_longest_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo two\nthree three three\n", encoding="utf-8")
    texts, counts = read(path, max_length=7)
    assert texts == ["one", "two two"]
    assert counts == {"text over 7 characters, skipped": 1}
    with pytest.raises(ConfigError, match=r"s2orc\.max_length is 3; .* 4 or more"):
        S2orc(min_length=4, max_length=3)


@pytest.fixture(scope="module")
def _one_identifier() -> Iterator[None]:
    """The model that tells languages, loaded once."""
    reason = "the extra `language` is not installed"
    langid = pytest.importorskip("py3langid.langid", reason=reason)
    identifier = langid.LanguageIdentifier
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(identifier, "from_model_file", cache(identifier.from_model_file))
        yield


@pytest.fixture
def spoken(tmp_path: Path, _one_identifier: None) -> Path:
    write(
        tmp_path / "metadata.jsonl",
        about("1", ENGLISH),
        about("2", GERMAN, year=2010),
        about("3", year=2010),
        about("4", year=2010),
        about("5", ENGLISH, year=2010),
        about("6", FRENCH),
    )
    write(
        tmp_path / "parses.jsonl",
        # What the metadata's abstract is in decides, where there is one.
        parse("2", "Body 2", abstract=ENGLISH),
        parse("3", "Body 3", abstract=GERMAN),
        parse("4", "Body 4"),
        parse("5", "Body 5"),
        parse("7", "Body 7", abstract=GERMAN),
    )
    return tmp_path


def test_the_language_of_abstracts(spoken: Path) -> None:
    left_out = "paper without an abstract that tells its language, left out"
    texts, counts = read(spoken, language="de")
    assert texts == [ENGLISH, "Body 2", GERMAN, "Body 3", GERMAN, "Body 7"]
    assert counts == {left_out: 1}
    assert read(spoken, language="EN") == (["Body 5", ENGLISH, ENGLISH], {left_out: 1})
    assert read(spoken, language="en", years=2010)[0] == ["Body 5", ENGLISH]


def test_full_texts_alone_tell_their_language(spoken: Path) -> None:
    assert read(spoken / "parses.jsonl", language="en")[0] == [ENGLISH, "Body 2"]


def test_a_language_that_nothing_is_in(spoken: Path) -> None:
    with pytest.raises(DataError, match=r"language is 'it', .*: de \(3\), en \(2\), fr \(1\)\."):
        read(spoken, language="it")
    with pytest.raises(ConfigError, match=r"language is 'english'; .* cs .* zu"):
        S2orc(language="english")
    # Norwegian is a truth value in YAML.
    with pytest.raises(DataError, match="language is 'no'"):
        read(spoken, language=False)


def test_telling_languages_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("py3langid", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'aang-plugin-s2orc\[language\]'"):
        S2orc(language="en")


def test_a_sample_of_the_metadata_of_s2orc() -> None:
    sample = Path(__file__).resolve().parents[4] / "shared" / "data" / "s2orc-sample"
    if not sample.is_dir():
        pytest.skip(f"{sample} does not exist")
    texts, counts = read(sample, years="2000-2009", field="Physics")
    content = (sample / "metadata_sample.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in content.splitlines()]
    wanted = [r for r in records if "Physics" in (r["mag_field_of_study"] or ())]
    assert len(texts) == sum(2000 <= (r["year"] or 0) <= 2009 for r in wanted) > 10
    assert counts[WITHOUT_YEAR] == sum(not r["year"] for r in wanted)
