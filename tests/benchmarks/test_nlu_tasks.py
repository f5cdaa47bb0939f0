"""αVIL's language tasks, from files as GLUE and SuperGLUE distribute them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from aang_core import DataError
from benchmarks.nlu_tasks import FirstToken, head, main, read
from benchmarks.small_task import EncoderSize, write_encoder

pytestmark = pytest.mark.release

CB = {"premise": "Nobody thought she would adjust.", "hypothesis": "she would adjust"}
COPA = {
    "premise": "My body cast a shadow over the grass.",
    "choice1": "The sun was rising.",
    "choice2": "The grass was cut.",
    "question": "cause",
}
MRPC = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


def jsonl(file: Path, row: dict[str, Any], labels: Sequence[Any]) -> None:
    """SuperGLUE's kind of file; a test set's rows have no label."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({**row, "idx": i, **({} if label is None else {"label": label})})
        for i, label in enumerate(labels)
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def mrpc(file: Path, labels: Sequence[str | None]) -> None:
    """GLUE's kind of file: with a byte order mark, and quotes that are never closed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [MRPC if labels[0] is not None else ("index", *MRPC[1:])]
    rows += [
        (str(i) if label is None else label, "702876", "702977", '"I am', 'He said "I am".')
        for i, label in enumerate(labels)
    ]
    file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8-sig")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glue")
    for part, count in (("train", 9), ("val", 6)):
        kinds = ["contradiction", "entailment", "neutral"] * 3
        jsonl(folder / "CB" / f"{part}.jsonl", CB, kinds[:count])
        jsonl(folder / "COPA" / f"{part}.jsonl", COPA, [0, 1, 1] * (count // 3))
    jsonl(folder / "COPA" / "test.jsonl", COPA, [None] * 3)
    mrpc(folder / "MRPC" / "train.tsv", ["1", "0"] * 4)
    mrpc(folder / "MRPC" / "dev.tsv", ["1", "0"])
    mrpc(folder / "MRPC" / "test.tsv", [None] * 2)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_encoder(folder, EncoderSize())
    return folder


def test_the_three_fields_of_copa(data: Path) -> None:
    """The question is a sentence, and the choices are one text."""
    pairs, labels = read(data / "COPA" / "train.jsonl", "[SEP]")
    assert pairs[0] == (
        "My body cast a shadow over the grass. What was the cause of this?",
        "The sun was rising. [SEP] The grass was cut.",
    )
    assert labels[:3] == [0, 1, 1]


def test_pairs_of_cb_and_mrpc(data: Path) -> None:
    pairs, labels = read(data / "CB" / "train.jsonl", "[SEP]")
    assert pairs[0] == ("Nobody thought she would adjust.", "she would adjust")
    assert labels[:3] == ["contradiction", "entailment", "neutral"]
    pairs, labels = read(data / "MRPC" / "train.tsv", "[SEP]")
    assert pairs[0] == ('"I am', 'He said "I am".')
    assert labels[:2] == ["1", "0"]
    assert read(data / "MRPC" / "test.tsv", "[SEP]")[1] == [None, None]


def test_a_file_of_another_task_is_refused(tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", {"passage": "a", "question": "b"}, [True])
    with pytest.raises(DataError, match=r"train.jsonl:1: no pair of texts among passage, question"):
        read(tmp_path / "train.jsonl", "[SEP]")


@pytest.mark.parametrize("weighter", ["single-task", "static", "diw", "alpha-vil"])
def test_an_ensemble_of_seeds(data: Path, encoder: Path, tmp_path: Path, weighter: str) -> None:
    """Its predictions are those that the two benchmarks take. A single seed is its own ensemble."""
    torch.set_num_threads(1)
    for target, seeds, written in (
        ("copa", 2, '{"idx": 0, "label": '),
        ("mrpc", 1, "index\tprediction\n0\t"),
    ):
        given = [str(data), str(encoder), f"--target={target}", f"--seeds={seeds}", "--epochs=2"]
        given += [f"--weighter={weighter}", f"--predictions={tmp_path}"]
        line = json.loads(CliRunner().invoke(main, given, catch_exceptions=False).stdout)
        assert len(line["dev"]) == seeds
        assert line["mean"] == pytest.approx(sum(line["dev"]) / seeds)
        assert line["ensemble"] == line["dev"][0] or seeds > 1
        (file,) = tmp_path.glob(f"{target.upper()}.*")
        content = file.read_text(encoding="utf-8")
        assert content.startswith(written)
        assert len(content.splitlines()) == 3


def test_common_padding_changes_nothing(encoder: Path) -> None:
    body = FirstToken(encoder).eval()
    ids = torch.tensor([[2, 7, 8, 3, 0, 0], [2, 9, 3, 0, 0, 0]])
    padded = body(input_ids=ids, attention_mask=(ids > 0).long())
    for row, length in ((0, 4), (1, 3)):
        alone = ids[row : row + 1, :length]
        expected = body.encoder(input_ids=alone).last_hidden_state[:, 0]
        torch.testing.assert_close(padded[row : row + 1], expected)


def test_the_head_is_the_papers() -> None:
    """768 × 256, ReLU, 256 × classes."""
    made = head(768, 3)
    assert [tuple(p.shape) for p in made.parameters()] == [(256, 768), (256,), (3, 256), (3,)]
    given = torch.randn(5, 768)
    first, _, last = made
    torch.testing.assert_close(made(given), last(first(given).clamp(min=0)))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--target=wnli"], "has no folder WNLI"),
        (["--target=cb", "--predictions=out"], "CB has no test set"),
    ],
)
def test_what_is_missing_is_said(
    data: Path, encoder: Path, options: list[str], problem: str
) -> None:
    refused = CliRunner().invoke(main, [str(data), str(encoder), *options])
    assert refused.exit_code == 2
    assert problem in refused.output
