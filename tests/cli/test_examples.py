"""The example spaces are valid and as large as they say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(("name", "objectives"), [("bert-style", 1), ("sparse-order", 7)])
def test_an_example_space_loads(name: str, objectives: int) -> None:
    path = EXAMPLES / f"{name}.yaml"
    command = [sys.executable, "-m", "aang_core", "show-space", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["name"] == name
    assert len(shown["objectives"]) == objectives
