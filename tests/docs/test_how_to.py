"""The Python of docs/how-to.md that needs nothing but data, run in order."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.docs.code_blocks import Block, blocks
from tests.docs.documents import ROOT

pytestmark = pytest.mark.release


def of_section(name: str) -> list[Block]:
    return [block for block in blocks(ROOT / "docs" / "how-to.md") if block.section == name]


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where a cell's value is shown, it is that value."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = 0
    for block in of_section("From Python and scikit-learn"):
        if block.language == "python":
            *before, last = block.text.strip().rsplit("\n", 1)
            exec("\n".join(before) if last[0] not in " )" else block.text, names)
        else:
            assert repr(eval(last, names)) == block.text.strip()
            shown += 1
    assert shown == 3
    assert len(repr(names["run"]).splitlines()) == 3
    assert names["again"].result == names["run"].result


def test_texts_are_cut_into_pieces_and_labelled_as_wholes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("a", "word " * 200, "good"), ("b", "one two", "bad")]
    pd.DataFrame(rows, columns=["id", "text", "label"]).to_csv("documents.csv", index=False)
    cut, joined = (block for block in of_section("Long texts") if block.language == "python")
    names: dict[str, Any] = {}
    exec(cut.text, names)
    pieces = pd.read_csv("pieces.csv")
    assert pieces["text"].str.split().str.len().tolist() == [80, 80, 40, 2]
    shares = {"probability:good": [0.9, 0.9, 0.1, 0.2], "probability:bad": [0.1, 0.1, 0.9, 0.8]}
    pieces.assign(**shares).to_csv("labelled.csv", index=False)
    exec(joined.text, names)
    assert names["labels"].to_dict() == {"a": "good", "b": "bad"}
