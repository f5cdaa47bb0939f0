"""Standard streams that are closed or full, readers that leave, and an interrupt at the start."""

import json
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.commands import aang

AANG = f"{sys.executable} -P -m aang_core"


def shell(command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", ">&- 2>&-"])
def test_a_stream_that_is_closed(closed: str, tmp_path: Path) -> None:
    """What would be written there is dropped, and goes to no file that is opened later."""
    done = shell(f"{AANG} list-primitives {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    plugin = tmp_path / "new"
    done = shell(f"{AANG} new-plugin --folder {plugin} mine {closed}")
    assert done.stderr == ""
    for path in plugin.rglob("*.py"):
        assert "Wrote" not in path.read_text()


@pytest.mark.parametrize("command", ["list-primitives", "--help", "plugins --json"])
def test_a_full_disk_behind_standard_output(command: str) -> None:
    done = shell(f"{AANG} {command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "the output" in done.stderr
    assert "No space left on device" in done.stderr


def test_a_reader_that_leaves() -> None:
    done = shell(f"{AANG} list-objectives | true")
    assert done.returncode in (0, 1)
    assert done.stderr == ""


@pytest.mark.parametrize("module", ["aang_core.cli.app", "aang_core.cli.listings"])
def test_an_interrupt_while_modules_are_imported(module: str) -> None:
    """As when somebody notices a mistake in the first second."""
    code = (
        "import os, signal, sys\n"
        # Whoever started the tests may have told their processes to ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from aang_core.cli import main\n"
        "main(['list-primitives'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize(
    "command",
    # The first imports torch and other libraries, which look for a home folder too.
    [pytest.param(["doctor", "--json"], marks=pytest.mark.full), ["list-primitives"]],
)
def test_without_a_home_folder(command: list[str], tmp_path: Path) -> None:
    """A user whom the system does not know, as in containers: no traceback, no folder ``~``."""
    code = (
        "import os, pwd, sys\n"
        "def unknown(number): raise KeyError(number)\n"
        "pwd.getpwuid = unknown\n"
        "os.environ.pop('HOME', None), os.environ.pop('AANG_CACHE', None)\n"
        "os.environ.pop('XDG_CACHE_HOME', None)\n"
        "from aang_core.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_the_doctor_knows_no_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the test above, with the libraries that this process has imported already."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "AANG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(aang, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    assert "Error" not in json.loads(done.stdout)["caches"]
    assert not list(tmp_path.iterdir())
