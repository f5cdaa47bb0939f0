"""What CONTRIBUTING.md says is there is there, and is all."""

import subprocess
import sys
import tomllib

import pytest

from tests.docs.code_blocks import blocks, same
from tests.docs.documents import ROOT
from tests.support.plugins import standard_plugins

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PLUGINS = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml"))


def test_the_standard_plugins_are_folders_of_this_repository() -> None:
    assert standard_plugins() <= set(PLUGINS)


def test_core_and_plugins_have_one_version() -> None:
    files = [ROOT / "pyproject.toml", *(ROOT / "plugins" / p / "pyproject.toml" for p in PLUGINS)]
    versions = {
        tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"] for file in files
    }
    assert len(versions) == 1


@pytest.mark.full
def test_the_run_of_one_test_prints_what_is_shown() -> None:
    shown = [b.text for b in blocks(CONTRIBUTING) if b.text.startswith("$ pytest")]
    assert shown
    for text in shown:
        command, _, output = text.removeprefix("$ ").partition("\n")
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        same(output, done.stdout)
