"""Why the dev gradient needs a separate head: TARTAN's Figure 3, on the demo task."""

import json
from pathlib import Path

import pytest

from tests.training.conftest import Aang

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.full
@pytest.mark.parametrize(("dev_head", "rails"), [("end-task", True), ("own-rows", False)])
def test_only_without_a_dev_head_the_end_task_weight_rails_to_one(
    aang: Aang, tmp_path: Path, dev_head: str, rails: bool
) -> None:
    """META-TARTAN with one denoising objective beside the end task, each weighing one half."""
    run = tmp_path / "run"
    done = aang(
        *(
            "train",
            "--space",
            EXAMPLES / "bert-style.yaml",
            "--weighter",
            "meta-tartan",
            "--set",
            "meta-tartan.lr=1.0",
        ),
        *("--dev-head", dev_head, "--steps", 60, "--eval-every", 60, "--out", run, "--quiet"),
    )
    assert done.status == 0, done.err
    text = (run / "weights.jsonl").read_text(encoding="utf-8")
    weights = [json.loads(line)["end_task_weight"] for line in text.splitlines()]
    if rails:
        assert weights[-1] > 0.9, weights[::10]
    else:
        assert weights[-1] < 0.5, weights[::10]
