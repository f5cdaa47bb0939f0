"""The plug-ins of others in ``examples/plugins``, trained together."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.authoring.installation import EXAMPLES, installed, run
from tests.training.conftest import Aang

SPACE = EXAMPLES[0].parent / "capitals.yaml"
FIRST = {f"aang-plugin-{name}" for name in ("span-mask", "capitalisation", "grad-cosine")}


@pytest.mark.full
def test_the_first_three_in_one_training(task_files: Path, tmp_path: Path) -> None:
    """In every row an objective weighs nothing exactly where its cosine was not positive."""
    environment = installed(tmp_path / "site", *EXAMPLES)
    done = run(
        environment,
        *("aang_core", "train", "--space", SPACE, "--weighter", "grad-cosine", "--quiet"),
        *("--train", task_files / "train.jsonl", "--dev", task_files / "dev.jsonl"),
        *("--set", "span-mask.rate=0.3", "--steps", 4, "--eval-every", 4, "--max-length", 32),
        # Every step measures, the first two included.
        *("--dev-head", "own-rows"),
        *("--batch-size", 4, "--aux-batch-size", 10, "--dev-batch-size", 8),
        *("--out", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "run" / "weights.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    objectives = {
        *(f"task/{transform}/bidirectional/denoise" for transform in ("no-op", "mask")),
        "task/mask/bidirectional/capitalisation",
        *(f"task/span-mask/bidirectional/{output}" for output in ("denoise", "capitalisation")),
    }
    helped = []
    assert len(rows) == 4
    for row in rows:
        assert set(row["weights"]) == objectives
        for name, weight in row["weights"].items():
            helped.append(row["cosines"][name] > 0)
            assert weight == (pytest.approx(0.1) if helped[-1] else 0)
        assert row["end_task_weight"] == pytest.approx(1 - sum(row["weights"].values()))
    # Otherwise nothing was shown.
    assert 0 < sum(helped) < len(helped)
    for before, after in pairwise(rows):
        decided = {**before["weights"], "end-task": before["end_task_weight"]}
        assert after["coefficients"] == pytest.approx(decided)
    assert all(row["norms"] == {} for row in rows)
    used = json.loads((tmp_path / "run" / "plugins.json").read_text())["primitives"]
    assert set(used.values()) >= FIRST


@pytest.mark.full
@pytest.mark.parametrize("weighter", ["equal-loss", "a-gem"])
def test_those_on_new_seams_train_together(weighter: str, task_files: Path, tmp_path: Path) -> None:
    """Deleted tokens, two views through the end task's head, losses, and gradient surgery."""
    environment = installed(tmp_path / "site", *EXAMPLES)
    space = tmp_path / "seams.yaml"
    space.write_text(
        "name: seams\ndata: [task]\ntransform: [no-op, drop-tokens]\n"
        "representation: [bidirectional]\noutput: [denoise, r-drop]\n"
    )
    done = run(
        environment,
        *("aang_core", "train", "--space", space, "--weighter", weighter, "--quiet"),
        *("--train", task_files / "train.jsonl", "--dev", task_files / "dev.jsonl"),
        *("--set", "drop-tokens.rate=0.3", "--steps", 3, "--eval-every", 3, "--max-length", 32),
        *("--batch-size", 4, "--aux-batch-size", 8, "--dev-batch-size", 8),
        *("--out", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "run" / "weights.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == 3
    weights = {"end-task": rows[-1]["end_task_weight"], **rows[-1]["weights"]}
    assert len(weights) == 5
    assert sum(weights.values()) == pytest.approx(1)
    if weighter == "equal-loss":
        # A decoder's loss is larger than that of two views which are nearly alike.
        alike = [weight for name, weight in weights.items() if name.endswith("r-drop")]
        decoded = [weight for name, weight in weights.items() if name.endswith("denoise")]
        assert min(alike) > 5 * max(decoded)
    else:
        assert set(weights.values()) == {0.2}


def test_capitals_that_the_tokenizer_has_not_kept(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Refused before there is anything of the run; the plug-in is used without being installed."""
    (module,) = SPACE.parent.glob("*/aang_plugin_capitalisation.py")
    space = "task/mask/bidirectional/capitalisation"
    out = tmp_path / "run"
    done = aang("--plugin", module, "train", *train_options, "--space", space, "--out", out)
    assert done.status == 2
    assert "tokenizer has no capitals" in done.err
    assert not out.exists()
