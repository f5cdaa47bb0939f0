"""What CONTRIBUTING.md says is there is there, and is all."""

import re
import subprocess
import sys
import tomllib

import pytest

from tests.docs.code_blocks import blocks, same
from tests.docs.documents import ROOT
from tests.support.plugins import STANDARD, STANDARD_COMMANDS

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PLUGINS = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml"))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_is_in_every_list_that_step_4_names(plugin: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    package = plugin.replace("-", "_")
    standard = project["project"]["optional-dependencies"]["standard"]
    assert plugin in [line.partition("==")[0] for line in standard]
    assert f"plugins/{plugin}/{package}" in project["tool"]["mypy"]["files"]
    assert f"plugins/{plugin}" in project["tool"]["mypy"]["mypy_path"]
    for name, line in (
        ("requirements.txt", rf"^-e plugins/{plugin}$"),
        ("README.md", rf"^\| \[`{plugin}`\]"),
        ("mkdocs.yml", rf"plugins/{plugin}\.md$"),
    ):
        assert re.search(line, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE), name
    assert any(plugin in owners.values() for owners in (*STANDARD.values(), STANDARD_COMMANDS))


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
