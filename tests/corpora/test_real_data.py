"""The published data sets, read whole; skipped where they are not beside the repository."""

from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from aang_core import ReadReport
from tests.support.data import load_task, tokenize


@pytest.mark.parametrize(
    ("name", "sizes", "classes", "overlap"),
    # The overlap is in ACL-ARC as it is published: a sentence is there once per citation.
    [("acl-arc", (1688, 114, 139), 6, (43, 52)), ("scierc", (3219, 455, 974), 7, (0, 0))],
)
def test_the_tasks_of_the_papers(
    real_data: Path,
    name: str,
    sizes: tuple[int, ...],
    classes: int,
    overlap: tuple[int, int],
) -> None:
    report = ReadReport()
    files = [real_data / name / f"{part}.jsonl" for part in ("train", "dev", "test")]
    task = load_task(*files, report=report)
    assert task.name == name
    assert (len(task.train), len(task.dev), len(task.test)) == sizes
    assert len(task.labels) == classes
    event = "{} text that is also in the training data"
    assert tuple(report.counts[event.format(part)] for part in ("dev", "test")) == overlap


@pytest.mark.parametrize(
    ("name", "train", "dev", "test", "labels"),
    [
        ("rte", 2241, 249, 277, ("entailment", "not_entailment")),
        ("wnli", 571, 64, 71, ("0", "1")),
    ],
)
def test_glue_pairs_with_their_stray_quotes(
    real_data: Path, name: str, train: int, dev: int, test: int, labels: tuple[str, ...]
) -> None:
    folder = real_data / name
    task = load_task(
        folder / "train.tsv", test=folder / "dev.tsv", text="sentence1", text_pair="sentence2"
    )
    assert (len(task.train), len(task.dev), len(task.test)) == (train, dev, test)
    assert task.labels == labels
    texts = [text for e in (*task.train, *task.dev) for text in (e.text, e.text_pair or "")]
    lines = (folder / "train.tsv").read_text(encoding="utf-8")
    assert sum(text.count('"') for text in texts) == lines.count('"')


def test_a_real_task_as_token_rows(
    real_data: Path, tmp_path: Path, roberta: PreTrainedTokenizerFast
) -> None:
    task = load_task(real_data / "acl-arc" / "train.jsonl", real_data / "acl-arc" / "dev.jsonl")
    rows = tokenize(
        task.train,
        roberta,
        max_length=64,
        cache=tmp_path,
        task_type=task.task_type,
    )
    assert len(rows) == 1688
    assert int(rows.lengths.max()) == 64
    assert rows.truncated > 0
    batch = rows.rows(torch.tensor([5, 1000]))
    assert batch.labels is not None
    assert [task.labels[i] for i in batch.labels] == [task.train[5].label, task.train[1000].label]
    statistics = rows.document_statistics()
    assert int(statistics.document_frequency.max()) <= statistics.documents == 1688
