"""A kind of end task that a plug-in adds, that of ``examples/plugins``, in every command."""

import json
from pathlib import Path

from transformers import AutoModelForSequenceClassification

from tests.docs.documents import ROOT
from tests.training.conftest import Aang

PLUGIN = ROOT / "examples" / "plugins" / "aang_plugin_ordinal.py"


def test_a_new_kind_from_files_to_predictions(
    aang: Aang, task_files: Path, encoder: Path, tmp_path: Path
) -> None:
    """It is recorded, saved and recognised again; where it is not known, one line says so."""
    for part in ("train", "dev"):
        lines = (task_files / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        rows = [json.dumps({"text": t, "label": 1 + len(t) % 3}) for t in texts]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    data, run = [f"{tmp_path / part}.jsonl" for part in ("train", "dev")], tmp_path / "run"
    asked = ["train", "--train", data[0], "--dev", data[1], "--task-type", "ordinal"]
    asked += ["--model", str(encoder), "--steps", "2", "--max-length", "32", "--out", str(run)]
    done = aang("--plugin", PLUGIN, *asked, "--weighter", "single-task", "--quiet", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["metric"]["name"] == "kappa"
    assert json.loads((run / "data.json").read_text())["task_type"] == "ordinal"
    saved = AutoModelForSequenceClassification.from_pretrained(run / "model")
    assert list(saved.config.id2label.values()) == ["1", "2", "3"]
    done = aang("--plugin", PLUGIN, "evaluate", run, "--data", data[1], "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["scores"].keys() == {"kappa", "accuracy"}
    done = aang("--plugin", PLUGIN, "predict", run, "A text.")
    assert json.loads(done.out)["predicted"] in ("1", "2", "3"), done.err
    done = aang("predict", run / "model", "A text.")
    assert done.status == 2
    assert "no plug-in that is loaded knows the model's kind of task" in done.err
    done = aang(*asked[:-1], tmp_path / "other")
    assert done.status == 2
    assert "there is no kind of end task ordinal" in done.err
    config = run / "model" / "config.json"
    written = json.loads(config.read_text(encoding="utf-8"))
    del written["end_task"]
    config.write_text(json.dumps(written), encoding="utf-8")
    (run / "model.json").unlink()
    done = aang("--plugin", PLUGIN, "predict", run, "A text.")
    assert done.status == 2, "a kind whose mark is missing must not be taken for another"
    assert "was trained as ordinal" in done.err
