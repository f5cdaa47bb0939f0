"""A gradient engine that a plug-in adds, as the documentation writes it, in a whole training."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.code_blocks import blocks
from tests.docs.documents import ROOT
from tests.training.conftest import Aang

PAGE = ROOT / "docs" / "plugin-interface" / "engines.md"


def cosines(run: Path) -> list[Any]:
    lines = (run / "weights.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line).get("cosines") for line in lines]


def test_a_new_engine_measures_as_stream_does(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """With riders and a dev head that remembers; run folder and summary name the plug-in."""
    plugin, *_ = (block for block in blocks(PAGE) if block.heading)
    path = tmp_path / str(plugin.heading)
    path.write_text(plugin.text, encoding="utf-8")
    assert len([line for line in plugin.text.splitlines() if line.strip()]) < 80
    for engine in ("stream", "plain"):
        done = aang(
            *("--plugin", path, "train", *train_options, "--gradients", engine, "--steps", 4),
            *("--dropout", 0, "--precision", "fp32", "--out", tmp_path / engine),
        )
        assert done.status == 0, done.err
        told = f"options     gradients plain ({path.name})" in done.err.splitlines()
        assert told == (engine == "plain")
    ours, stream = cosines(tmp_path / "plain"), cosines(tmp_path / "stream")
    assert len(stream) == 4
    assert stream[-1] is not None
    for measured, expected in zip(ours, stream, strict=True):
        assert measured == (None if expected is None else pytest.approx(expected, abs=1e-4))
    recorded = json.loads((tmp_path / "plain" / "plugins.json").read_text(encoding="utf-8"))
    assert recorded["primitives"]["engine/plain"] == path.name
    recorded = json.loads((tmp_path / "stream" / "plugins.json").read_text(encoding="utf-8"))
    assert path.name not in recorded["primitives"].values()
