"""Core and standard plug-ins are released together, under one number."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import ROOT


def versions(root: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / ".ci" / "versions.py", "--root", root, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that hold the version."""
    for path in (ROOT / "pyproject.toml", ROOT / "CITATION.cff", *ROOT.glob("plugins/*/*.toml")):
        place = tmp_path / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    return tmp_path


def test_there_is_one_version() -> None:
    done = versions(ROOT)
    assert done.returncode == 0, done.stderr


def test_it_is_set_everywhere(copy: Path) -> None:
    done = versions(copy, "--set", "7.8.9", "--tag", "v7.8.9")
    assert (done.returncode, done.stdout) == (0, "7.8.9\n"), done.stderr
    assert "0.1.0" not in (copy / "pyproject.toml").read_text(encoding="utf-8")
    application = (copy / "plugins" / "aang" / "pyproject.toml").read_text(encoding="utf-8")
    assert '"aang-plugin-bert==7.8.9"' in application
    assert "0.1.0" not in application
    assert "\nversion: 7.8.9\n" in (copy / "CITATION.cff").read_text(encoding="utf-8")


def test_a_tag_of_another_version_and_a_plugin_left_behind_are_refused(copy: Path) -> None:
    done = versions(copy, "--tag", "v9.9.9")
    assert done.returncode == 1
    assert "the tag is v9.9.9, and the version is" in done.stderr
    file = copy / "plugins" / "aang-plugin-gpt" / "pyproject.toml"
    file.write_text(file.read_text().replace('version = "', 'version = "9'), encoding="utf-8")
    done = versions(copy)
    assert done.returncode == 1
    assert "plugins/aang-plugin-gpt/pyproject.toml: 9" in done.stderr
