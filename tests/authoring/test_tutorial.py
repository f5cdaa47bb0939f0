"""docs/writing-plugins.md, followed word for word."""

import os
import sys
from pathlib import Path

import pytest

from tests.authoring.installation import installed, run
from tests.docs.documents import ROOT
from tests.docs.tutorial import MODULE, TEST, blocks, follow


@pytest.mark.full
def test_ten_minutes_to_your_own(tmp_path: Path) -> None:
    """Every command and every output, and then the test of one's own."""
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
    ((_, own),) = (block for block in blocks("Testing it") if block[0] == "python")
    test = tmp_path / TEST
    test.write_text(f"{test.read_text(encoding='utf-8')}\n\n{own}", encoding="utf-8")
    done = run(environment, "pytest", "-q", "-p", "no:cacheprovider", test)
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout


def test_the_smallest_plugin_is_the_one_that_is_tested() -> None:
    shown = [block.split("\n", 1) for _, block in blocks("The smallest one")[:2]]
    for name, content in shown:
        file = ROOT / "docs" / "smallest-plugin" / name.removeprefix("# ")
        assert content == file.read_text(encoding="utf-8")
