"""A gradient engine that a plug-in adds, that of ``examples/plugins``, in a whole training."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT
from tests.training.conftest import Aang

PLUGIN = ROOT / "examples" / "plugins" / "aang_plugin_plain.py"


def cosines(run: Path) -> list[Any]:
    lines = (run / "weights.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line).get("cosines") for line in lines]


def test_a_new_engine_measures_as_stream_does(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """With riders and a dev head that remembers; run folder and summary name the plug-in."""
    for engine in ("stream", "plain"):
        done = aang(
            *("--plugin", PLUGIN, "train", *train_options, "--gradients", engine, "--steps", 4),
            *("--dropout", 0, "--precision", "fp32", "--out", tmp_path / engine),
        )
        assert done.status == 0, done.err
        told = f"options     gradients plain ({PLUGIN.name})" in done.err.splitlines()
        assert told == (engine == "plain")
    ours, stream = cosines(tmp_path / "plain"), cosines(tmp_path / "stream")
    assert len(stream) == 4
    assert stream[-1] is not None
    for measured, expected in zip(ours, stream, strict=True):
        assert measured == (None if expected is None else pytest.approx(expected, abs=1e-4))
    recorded = json.loads((tmp_path / "plain" / "plugins.json").read_text(encoding="utf-8"))
    assert recorded["primitives"]["engine/plain"] == PLUGIN.name
    recorded = json.loads((tmp_path / "stream" / "plugins.json").read_text(encoding="utf-8"))
    assert PLUGIN.name not in recorded["primitives"].values()
