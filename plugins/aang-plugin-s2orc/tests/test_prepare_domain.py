"""``aang prepare-domain`` on real papers and a real task, and the file it writes in training."""

import json
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from tests.support.commands import aang

PAPERS = [
    {"id": "1", "text": "Neural parsers read sentences.\n\nThe weather was fine in the mountains."},
    {"id": "2", "text": "Parsers of sentences need grammars.\n\nNeural parsers read sentences."},
    {"id": "3", "text": "one two three four five six seven eight nine of the test set is here"},
]
TASK = [{"text": "Which grammars do parsers of sentences use?", "label": "a"}]
TEST = [{"text": "zero one two three four five six seven eight", "label": "a"}]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, records in (("papers", PAPERS), ("task", TASK), ("test", TEST)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def prepare(folder: Path, *more: object) -> Result:
    arguments = ["prepare-domain", folder / "papers.jsonl", "--near", folder / "task.jsonl"]
    return CliRunner().invoke(aang, [str(a) for a in (*arguments, *more)])


def texts(path: Path) -> list[str]:
    column: list[str] = parquet.read_table(path)["text"].to_pylist()
    return column


def provenance(path: Path) -> Any:
    return json.loads(parquet.read_schema(path).metadata[b"aang"])


def test_what_is_nearest_without_what_is_tested_on(files: Path) -> None:
    out = files / "domain.parquet"
    done = prepare(files, "--test", files / "test.jsonl", "--times", 2, "--out", out)
    assert done.exit_code == 0, done.output
    assert texts(out) == ["Parsers of sentences need grammars.", "Neural parsers read sentences."]
    said = provenance(out)
    assert said["counts"] == {
        "read": 5,
        "duplicates": 1,
        "overlapping": 1,
        "candidates": 3,
        "written": 2,
    }
    assert said["sample"] == "nearest"
    assert sorted(p.name for p in files.glob(".*")) == []
    listed = CliRunner().invoke(aang, ["prepare-domain", "--help"])
    assert "--near" in listed.output


def test_a_random_sample_depends_on_the_seed_alone(files: Path) -> None:
    drawn = []
    for i, seed in enumerate((3, 3, 4, 5, 6)):
        out = files / f"{i}.parquet"
        done = prepare(files, "--sample", "random", "--times", 2, "--seed", seed, "--out", out)
        assert done.exit_code == 0, done.output
        assert "no overlap is removed" in done.output
        drawn.append(texts(out))
    assert drawn[0] == drawn[1]
    assert len({tuple(sample) for sample in drawn}) > 1


def test_the_first_texts_are_paragraphs_in_a_row(files: Path) -> None:
    """Whatever they are about, without what came before, and nothing further is read."""
    out = files / "domain.parquet"
    done = prepare(files, "--sample", "first", "--times", 3, "--out", out)
    assert done.exit_code == 0, done.output
    assert texts(out) == [
        "Neural parsers read sentences.",
        "The weather was fine in the mountains.",
        "Parsers of sentences need grammars.",
    ]
    assert provenance(out)["sample"] == "first"
    assert provenance(out)["counts"]["read"] == 3


def test_the_source_reads_what_was_written(files: Path) -> None:
    first, second = files / "first.parquet", files / "second.parquet"
    assert prepare(files, "--times", 9, "--out", first).exit_code == 0
    again = ["prepare-domain", first, "--near", files / "task.jsonl", "--times", 9, "--out", second]
    done = CliRunner().invoke(aang, [str(a) for a in again])
    assert done.exit_code == 0, done.output
    assert sorted(texts(second)) == sorted(texts(first))


def test_bad_input(files: Path) -> None:
    """Exit status 2, a line that says what to do, and no file."""
    out = files / "out.parquet"
    (files / "papers.jsonl").write_text(json.dumps(PAPERS[2]) + "\n", encoding="utf-8")
    for more, says in (
        (["--test", files / "test.jsonl"], "no text is left to draw from: of 1 texts"),
        (["--times", 0], "--times 0.0: give a number above 0"),
        (["--times", "inf"], "--times inf: give a number above 0"),
        (["--times", "nan"], "--times nan: give a number above 0"),
        (["--seed", 2**63], "is not in the range 0<=x<=9223372036854775807"),
        (["--text", "question"], "there is no column 'question'"),
        (["--source", "nowhere"], "nowhere"),
        (["--field", "Wizardry"], "no record names its fields of study"),
        (["--dev", files / "missing.jsonl"], "no such file"),
    ):
        done = prepare(files, *more, "--out", out)
        assert done.exit_code == 2, (more, done.output)
        assert says in done.output
        assert not out.exists()
    done = prepare(files, "--out", files / "out.csv")
    assert done.exit_code == 2
    assert "let its name end in .parquet" in done.output
    done = prepare(files, "--out", files / "missing" / "out.parquet")
    assert done.exit_code == 2
    assert "there is no folder" in done.output


def test_options_of_the_source_alone_are_taken(files: Path) -> None:
    out = files / "out.parquet"
    done = prepare(files, "--set", "s2roc.min_length=40", "--out", out)
    assert done.exit_code == 2
    assert "--set s2roc.…: the source of the texts is not 's2roc'; did you mean s2orc?" in (
        " ".join(done.output.split())
    )
    assert not out.exists()
    source = ["--source", "aang-plugin-s2orc:s2orc", "--set", "aang-plugin-s2orc:s2orc.limit=1"]
    done = prepare(files, *source, "--out", out)
    assert done.exit_code == 0, done.output
    assert provenance(out)["options"] == {"limit": 1}
    done = prepare(files, *source[:2], "--set", "s2orc.limit=1", "--out", files / "other.parquet")
    assert done.exit_code == 2
    assert "aang-plugin-s2orc:s2orc" in done.output


def test_half_a_surrogate_pair_is_replaced(files: Path) -> None:
    """JSON can hold one, and Parquet cannot."""
    line = '{"id": "4", "text": "Parsers of sentences and half an emoji: \\ud83d"}\n'
    (files / "papers.jsonl").write_text(line, encoding="utf-8")
    out = files / "out.parquet"
    done = prepare(files, "--out", out)
    assert done.exit_code == 0, done.output
    assert texts(out) == ["Parsers of sentences and half an emoji: \ufffd"]
    assert "half a surrogate pair, replaced by U+FFFD" in done.output


def test_papers_of_some_years(files: Path) -> None:
    records = [
        {"paper_id": str(year), "title": f"Parsers of {year} are better", "year": year}
        for year in range(2000, 2010)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (files / "papers.jsonl").write_text(lines, encoding="utf-8")
    out = files / "out.parquet"
    done = prepare(files, "--years", "2004-2006", "--times", 9, "--out", out)
    assert done.exit_code == 0, done.output
    assert sorted(texts(out)) == [f"Parsers of {year} are better" for year in (2004, 2005, 2006)]
    assert provenance(out)["options"] == {"years": "2004-2006"}
    done = prepare(files, "--years", "1990", "--out", files / "none.parquet")
    assert done.exit_code == 2
    assert "The most frequent years there are: 2000 (1)" in done.output


@pytest.mark.full
def test_papers_of_the_acl_anthology(tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist")
    task = folder / "acl-arc"
    out = tmp_path / "cs.parquet"
    arguments = [
        *("prepare-domain", folder / "cs-papers", "--field", "Computer Science"),
        *("--near", task / "train.jsonl", "--dev", task / "dev.jsonl"),
        *("--test", task / "test.jsonl", "--times", 10, "--out", out),
    ]
    done = CliRunner().invoke(aang, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    assert len(texts(out)) == 16_880
    counts = provenance(out)["counts"]
    assert counts["read"] == 38_285
    assert counts["overlapping"] == 2


FAULTY = """
from aang_core import Data, Example, RegisterPrimitive, hookimpl

class Faulty(Data):
    def __init__(self, fault: str = "raises"):
        self.fault = fault

    def examples(self, context):
        yield Example("a good text about parsers")
        if self.fault == "raises":
            raise RuntimeError("the index is broken")
        yield 7 if self.fault == "no example" else Example(7)

@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    register("faulty", "texts with a fault", Faulty)
"""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raises", "the index is broken"),
        ("no example", "example 1: expected an Example, got 7"),
        ("no text", "the text of example 1: expected a string, got 7"),
    ],
)
def test_a_source_with_a_fault_is_named(files: Path, fault: str, told: str) -> None:
    plugin, out = files / "plugin.py", files / "out.parquet"
    plugin.write_text(FAULTY, encoding="utf-8")
    arguments = [
        *("--plugin", plugin, "prepare-domain", files / "papers.jsonl"),
        *("--near", files / "task.jsonl", "--out", out),
        *("--source", "faulty", "--set", f"faulty.fault={fault}"),
    ]
    done = CliRunner().invoke(aang, [str(a) for a in arguments])
    assert done.exit_code == 2, done.output
    assert "data faulty" in done.output
    assert told in done.output
    assert not out.exists()


def test_a_full_disk_leaves_the_file_of_before(files: Path) -> None:
    out = files / "out.parquet"
    out.write_text("the old one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        done = prepare(files, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert done.exit_code == 2
    assert f"cannot write {out}: File too large. Allow larger files" in done.output
    assert out.read_text() == "the old one"
    assert not list(files.glob(".*"))
