"""The tutorial of docs/plugins.md, followed word for word."""

import os
import sys
from pathlib import Path

import pytest

from tests.authoring.installation import installed
from tests.docs.tutorial import MODULE, follow


@pytest.mark.full
def test_a_tested_objective_in_ten_minutes(tmp_path: Path) -> None:
    """Every command and every output, up to a training with the new objective."""
    site = tmp_path / "site"
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PATH": scripts, "PYTHONPATH": path}

    def install(command: str) -> None:
        assert command == f"pip install -e '{MODULE.parent}[test]'"
        installed(site, tmp_path / MODULE.parent)
        # As pip's -e has it, which would write into the environment that runs this.
        (site / MODULE.name).unlink()
        (site / MODULE.name).symlink_to(tmp_path / MODULE)

    follow(tmp_path, environment, install)
    (weights,) = tmp_path.glob("runs/*/weights.jsonl")
    assert "task/whole-words/bidirectional/denoise" in weights.read_text(encoding="utf-8")
