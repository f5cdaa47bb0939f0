"""Plug-ins as their authors make them: written out, installed, tested."""

from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from aang_core import Stage
from tests.authoring.installation import installed, run
from tests.support.commands import aang
from tests.support.plugins import write_plugin

STAGES: tuple[Stage, ...] = get_args(Stage)


@pytest.mark.full
def test_a_new_plugin_of_every_stage_passes_its_own_tests(tmp_path: Path) -> None:
    """Written, installed as pip installs it, tested by the test that came with it."""
    for stage in STAGES:
        written = CliRunner().invoke(
            aang, ["new-plugin", f"my-{stage}", "--stage", stage, "--folder", str(tmp_path)]
        )
        assert written.exit_code == 0, written.output
    folders = sorted(tmp_path.glob("aang-plugin-*"))
    assert len(folders) == len(STAGES)
    assert all(len(list(folder.iterdir())) == 3 for folder in folders)
    environment = installed(tmp_path / "site", *folders)
    tests = [str(next(folder.glob("test_*.py"))) for folder in folders]
    done = run(environment, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, *tests)
    assert done.returncode == 0, done.stdout
    listed = run(environment, "aang_core", "list-primitives", "--json")
    for stage in STAGES:
        assert f'"my-{stage}"' in listed.stdout


def test_names_that_are_taken_are_noted(tmp_path: Path) -> None:
    """It is written nevertheless: the author may rename the primitive, or mean to replace it."""
    done = CliRunner().invoke(aang, ["new-plugin", "mask", "--folder", str(tmp_path)])
    assert done.exit_code == 0
    assert "note: the transform mask is a name of aang-plugin-bert too" in done.stderr
    assert "aang-plugin-mask:mask" in done.stderr
    done = CliRunner().invoke(aang, ["new-plugin", "bert", "--folder", str(tmp_path)])
    assert "note: there is a plug-in aang-plugin-bert" in done.stderr
    done = CliRunner().invoke(aang, ["new-plugin", "core", "--folder", str(tmp_path)])
    assert "note: aang-core has an entry point core too" in done.stderr
    done = CliRunner().invoke(aang, ["new-plugin", "swirl", "--folder", str(tmp_path)])
    assert done.stderr == ""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["none", "true", "false", "class", "a-1"])
def test_words_of_python_are_names_too(name: str, stage: Stage, tmp_path: Path) -> None:
    for file in write_plugin(name, stage, tmp_path):
        if file.suffix == ".py":
            compile(file.read_text(encoding="utf-8"), str(file), "exec")


def test_bad_names(tmp_path: Path) -> None:
    for name in ("Mine", "a b", "../up", "-x", ""):
        done = CliRunner().invoke(aang, ["new-plugin", "--folder", str(tmp_path), "--", name])
        assert done.exit_code == 2, name
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        done = CliRunner().invoke(aang, ["new-plugin", "twice", "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert "exists already" in done.output
