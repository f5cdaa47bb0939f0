"""``aang check-plugin``: good plug-ins pass, and every way to be bad is noticed and explained."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from aang_core.cli.app import aang
from aang_core.plugins import load_plugins

STANDARD = sorted({r.origin.distribution for r in load_plugins(environ={}).records})


@pytest.mark.parametrize("plugin", STANDARD)
def test_every_standard_plugin_passes(plugin: str) -> None:
    done = CliRunner().invoke(aang, ["check-plugin", plugin])
    assert done.exit_code == 0, done.output
    assert "FAILED" not in done.output


GOOD = """
    from aang_core import hookimpl

    class Mine:
        def __call__(self, ids, ordinary, vocabulary, generator):
            from aang_core import Corruption, select_tokens
            selected = select_tokens(ordinary, generator)
            return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)

    @hookimpl
    def aang_register_transforms(register):
        register("mine", "masks", Mine, provides=("masks-tokens",))
"""

BAD = {
    "imports torch": (
        ("from aang_core import hookimpl", "import torch\n    from aang_core import hookimpl"),
        ["FAILED  registering imports nothing heavy", "torch", "module:Class"],
    ),
    "an untrue trait": (
        ('provides=("masks-tokens",)', 'provides=("replaces-tokens",)'),
        ["FAILED  transform mine: its contract", "trait replaces-tokens"],
    ),
    "global randomness": (
        ("select_tokens(ordinary, generator)", "ordinary & (ordinary.float().uniform_() < 0.2)"),
        ["FAILED  transform mine: its contract", "global state of torch"],
    ),
    "changes its input": (
        ("ids.masked_fill(selected", "ids.masked_fill_(selected"),
        ["FAILED  transform mine: its contract", "changed in place"],
    ),
    "needs an option": (
        ("class Mine:", "class Mine:\n        def __init__(self, rate): self.rate = rate"),
        ["FAILED  transform mine: it can be made without options", "rate", "default"],
    ),
    "cannot be pickled": (
        ("class Mine:", "class Mine:\n        def __init__(self): self.f = lambda: 1"),
        ["FAILED  transform mine: it can be pickled"],
    ),
    "a name with capitals": (('"mine"', '"Mine"'), ["FAILED  it loads", "the name must match"]),
    "no summary": (('"masks", Mine', '"", Mine'), ["FAILED  it loads", "summary"]),
    "an undecorated hook": (("@hookimpl", ""), ["FAILED  it loads", "not decorated"]),
    "another interface": (
        ("class Mine:", "AANG_PLUGIN_API = 2\n    class Mine:"),
        ["FAILED  it loads", "version 2 of the plug-in interface", "update aang-core"],
    ),
    "an illegal objective": (
        (
            "    @hookimpl",
            "    @hookimpl\n    def aang_register_objectives(register):\n"
            '        register("odd", "odd", "task/mine/left-to-right/end-task")\n\n    @hookimpl',
        ),
        ["FAILED  objective odd: it is legal", "sentence-representation"],
    ),
}


def checked(folder: Path, source: str) -> "subprocess.CompletedProcess[str]":
    path = folder / "mine.py"
    path.write_text(dedent(source), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "aang_core", "check-plugin", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_good_file_passes(tmp_path: Path) -> None:
    done = checked(tmp_path, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 checks passed" in done.stdout


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_noticed(tmp_path: Path, case: str) -> None:
    (old, new), said = BAD[case]
    assert old in GOOD
    done = checked(tmp_path, GOOD.replace(old, new))
    assert done.returncode == 1, done.stdout + done.stderr
    for words in said:
        assert words in done.stdout


def test_as_a_pytest_plugin(tmp_path: Path) -> None:
    """The checks run together with the repository's own tests and fail like tests."""
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    path = tmp_path / "mine.py"
    path.write_text(dedent(GOOD.replace('"masks-tokens",', '"replaces-tokens",')))
    command = [sys.executable, "-m", "pytest", "-p", "aang_core.testing.pytest_plugin"]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "--aang-plugin", str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "5 passed" in done.stdout
    assert "1 failed" in done.stdout
    assert "trait replaces-tokens" in done.stdout


def test_no_such_plugin(tmp_path: Path) -> None:
    done = CliRunner().invoke(aang, ["check-plugin", "aang-plugin-xlnt"])
    assert done.exit_code == 2
    assert "did you mean aang-plugin-xlnet" in done.output
    done = CliRunner().invoke(aang, ["check-plugin", str(tmp_path)])
    assert done.exit_code == 2
    assert "pyproject.toml" in done.output
