"""Core and plug-ins as wheels, in an environment that has nothing else."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

pytestmark = pytest.mark.slow

FOLDERS = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", folder, *FOLDERS),
    )
    return folder


def test_no_file_is_missing_from_a_wheel(dist: Path) -> None:
    """Everything in a package's folder is in its wheel: encoder, spaces, templates and all."""
    wheels = {path.name.split("-")[0]: path for path in dist.glob("*.whl")}
    assert len(wheels) == len(FOLDERS)
    for folder in FOLDERS:
        package = "aang_core" if folder == ROOT else folder.name.replace("-", "_")
        tree = {
            str(path.relative_to(folder))
            for path in (folder / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        names = set(zipfile.ZipFile(wheels[package]).namelist())
        assert tree <= names, sorted(tree - names)
        assert not {name for name in names if name.startswith("tests/")}


def test_one_plugin_alone_and_all_of_them(dist: Path, tmp_path: Path) -> None:
    """``pip install aang-plugin-xlnet`` and no more lists its primitive; then everything."""
    run(sys.executable, "-m", "venv", tmp_path)
    python = tmp_path / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--find-links", dist)
    run(*install, "aang-plugin-xlnet")
    aang = tmp_path / "bin" / "aang"
    listed = json.loads(run(aang, "list-primitives", "--json").stdout)
    assert {row["name"] for row in listed} == {"no-op", "random-factorized"}
    run(*install, "aang-core[standard]")
    listed = json.loads(run(aang, "list-primitives", "--json").stdout)
    assert {row["distribution"] for row in listed} == {"aang-core", *(f.name for f in FOLDERS[1:])}
    shown = json.loads(run(aang, "show-space", "td+ed", "--json").stdout)
    assert len(shown["objectives"]) == 40
