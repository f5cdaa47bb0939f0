"""The cells of docs/notebook.md, run in order."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT

pytestmark = pytest.mark.release


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where a cell's value is shown, it is that value."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    cells = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page, re.DOTALL)
    assert len(cells) == 11
    for code, shown in cells:
        *statements, last = code.strip().split("\n\n")[-1].splitlines()
        exec(code, names)
        if "run" in names:
            assert len(repr(names["run"]).splitlines()) == 3
        if shown:
            assert not statements
            assert repr(eval(last, names)) == shown.strip()
    assert names["heaviest"].index.str.startswith("task/").all()
    assert names["label"] in names["learned"].model.config.label2id
    assert len(names["figure"].data) == 4
