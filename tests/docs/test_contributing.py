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


def test_a_plugin_is_in_every_list_that_step_4_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    standard = project["project"]["optional-dependencies"]["standard"]
    listed = [line.partition("==")[0] for line in standard]
    mypy = project["tool"]["mypy"]
    owners = {name for table in (*STANDARD.values(), STANDARD_COMMANDS) for name in table.values()}
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in ("requirements.txt", "README.md", "mkdocs.yml")
    }
    lacking = []
    for plugin in PLUGINS:
        there = {
            "the extra standard": plugin in listed,
            "files of mypy": f"plugins/{plugin}/{plugin.replace('-', '_')}" in mypy["files"],
            "mypy_path": f"plugins/{plugin}" in mypy["mypy_path"],
            "the standard plug-ins": plugin in owners,
        }
        for name, line in (
            ("requirements.txt", rf"^-e plugins/{plugin}$"),
            ("README.md", rf"^\| \[`{plugin}`\]"),
            ("mkdocs.yml", rf"plugins/{plugin}\.md$"),
        ):
            there[name] = bool(re.search(line, texts[name], re.MULTILINE))
        lacking += [f"{plugin}: {where}" for where, is_there in there.items() if not is_there]
    assert lacking == []


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
