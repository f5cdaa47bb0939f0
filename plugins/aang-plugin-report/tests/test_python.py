"""Training and looking at a run from Python, as in a notebook."""

from pathlib import Path

import aang
import pytest
from aang import Run
from transformers import PreTrainedModel

from aang_core import ConfigError, DataError


def test_a_run_opened_again(run: Path) -> None:
    """Its tables are indexed by step; its charts are plotly figures; its model is transformers'."""
    opened = Run.open(run)
    assert opened.result["steps"] == 12
    assert opened.weights.shape == (12, 25)
    assert opened.weights.index.tolist() == list(range(1, 13))
    assert opened.weights.sum(axis=1).tolist() == pytest.approx([1.0] * 12)
    assert opened.metrics.index.tolist() == [0, 3, 6, 9, 12]
    assert set(opened.metrics.columns) == {"macro-f1", "micro-f1", "accuracy", "loss"}
    figure = opened.plot()
    assert list(figure.data[0].x) == [0, 3, 6, 9, 12]
    assert figure.layout.title.text == "macro-f1 over steps"
    assert len(opened.plot("factors-output").data) == 2
    assert isinstance(opened.model, PreTrainedModel)
    with pytest.raises(ConfigError, match="no chart of this run; it has scores"):
        opened.plot("scors")


def test_train(report_encoder: Path, run: Path, tmp_path: Path) -> None:
    """Options are keywords; the result is the same kind of run."""
    data = run.parent / "train.jsonl"
    trained = aang.train(
        train=data,
        model=str(report_encoder),
        weighter="single-task",
        max_length=16,
        steps=2,
        eval_every=1,
        out=tmp_path / "run",
    )
    assert trained.folder == tmp_path / "run"
    assert trained.result["metric"]["test"] is None
    assert trained.weights["end-task"].tolist() == [1.0, 1.0]
    assert trained.metrics.index.tolist() == [0, 1, 2]
    with pytest.raises(ConfigError, match="no such option"):
        aang.train(trian=data)
    with pytest.raises(DataError, match="not a run folder"):
        Run.open(tmp_path)
