"""Core and plug-ins as wheels, in an environment that has nothing else."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from tests.docs.tutorial import blocks, follow, run_block

pytestmark = pytest.mark.full

FOLDERS = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.fixture(scope="module", autouse=True)
def the_same_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """pip installs the torch that the tests run with; the newest would be gigabytes."""
    path = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    path.write_text(f"torch=={version('torch').partition('+')[0]}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_CONSTRAINT", str(path))
        yield


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", folder, *FOLDERS),
    )
    return folder


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has nothing."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder)
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


def test_one_plugin_alone_and_all_of_them(dist: Path, venv: Path) -> None:
    """``pip install aang-plugin-xlnet`` and no more lists its primitive; then everything."""
    install = (venv / "bin" / "pip", "install", "--quiet", "--find-links", dist)
    run(*install, "aang-plugin-xlnet")
    aang = venv / "bin" / "aang"
    listed = json.loads(run(aang, "list-primitives", "--json").stdout)
    assert {row["name"] for row in listed} == {"no-op", "single-task", "random-factorized"}
    run(*install, "aang", "aang-testing")
    loaded = json.loads(run(aang, "plugins", "--json").stdout)
    # SetFit's plug-in is installed by those who want it.
    names = {f.name for f in FOLDERS[1:]} - {"aang-plugin-setfit"}
    assert {row["distribution"] for row in loaded} == {"aang-core", *names}
    assert {row["status"] for row in loaded} == {"ok"}
    shown = json.loads(run(aang, "show-space", "td+ed", "--json").stdout)
    assert len(shown["objectives"]) == 40


def test_the_demo_trains_in_that_environment(venv: Path, tmp_path: Path) -> None:
    """``pip install aang && aang train``, some steps of it."""
    run(
        *(venv / "bin" / "aang", "train", "--space", "task/bert-op/bidirectional/denoise"),
        *("--weighter", "factored", "--steps", 3, "--eval-every", 3, "--batch-size", 4),
        *("--max-length", 16, "--out", tmp_path / "run"),
    )
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.fixture(scope="module")
def few(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel and one plug-in of primitives."""
    folder = tmp_path_factory.mktemp("few")
    run(sys.executable, "-m", "venv", folder)
    wanted = ("aang-core", "aang-plugin-contrast")
    run(folder / "bin" / "pip", "install", "--quiet", "--find-links", dist, *wanted)
    return folder


def test_the_kernel_brings_no_text(few: Path) -> None:
    listed = json.loads(run(few / "bin" / "pip", "list", "--format", "json").stdout)
    heavy = {"transformers", "datasets", "plotly", "matplotlib", "ray", "selenium", "hypothesis"}
    assert not heavy & {entry["name"] for entry in listed}


def test_a_command_that_is_not_installed_says_what_brings_it(few: Path) -> None:
    for name in ("train", "compare"):
        command = [few / "bin" / "aang", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"no command {name}" in done.stderr
        assert "pip install aang" in done.stderr


def test_the_tutorial_in_that_environment(dist: Path, venv: Path, tmp_path: Path) -> None:
    """A plug-in written, installed, changed, tested, trained and built as the page has it."""
    run(venv / "bin" / "pip", "install", "--quiet", "--find-links", dist, "aang", "aang-testing")
    # Where the core will come from once it is published.
    environment = {**os.environ, "PIP_FIND_LINKS": str(dist)}
    environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{environment['PATH']}"
    environment.pop("PYTHONPATH", None)
    follow(tmp_path, environment)
    run_block(
        "aang train --space task/whole-words/bidirectional/denoise --set whole-words.rate=0.2 "
        "--steps 1 --eval-every 1 --batch-size 2 --aux-batch-size 2 --max-length 16 --quiet",
        tmp_path,
        environment,
    )
    ((_, publish),) = blocks("Checks and publishing")
    assert "6 of 6" in run_block(publish, tmp_path, environment)
