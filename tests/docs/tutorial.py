"""The tutorial of docs/plugins.md, followed word for word."""

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "plugins.md"
MODULE = Path("aang-plugin-whole-words/aang_plugin_whole_words.py")
TEST = Path("aang-plugin-whole-words/test_whole_words.py")

_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(heading: str) -> list[tuple[str, str]]:
    """Language and content of each code block under a heading of the page."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [(language, dedent(block)) for language, block in _BLOCK.findall(section)]


def follow(
    folder: Path, environment: Mapping[str, str], install: Callable[[str], None] | None = None
) -> None:
    """Do in ``folder`` what "A tested objective in ten minutes" says, and see what it shows.

    install: takes the place of commands that begin with ``pip install``.
    """
    for language, block in blocks("A tested objective in ten minutes"):
        if language == "python" and "def test_" in block:
            with (folder / TEST).open("a", encoding="utf-8") as test:
                test.write(f"\n\n{block}")
        elif language == "python":
            _replace_the_class(folder / MODULE, block)
        elif language == "console":
            # Each command stands before what it shows.
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, shown = part.split("\n", 1)
                output = run_block(command, folder, environment)
                shows = re.escape(shown).replace("…", ".*")
                assert re.fullmatch(shows, output, flags=re.DOTALL), output
        else:
            for command in block.splitlines():
                if install is not None and command.startswith("pip install"):
                    install(command)
                else:
                    run_block(command, folder, environment)


def run_block(commands: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Commands as a shell runs them, up to one that fails; what they print."""
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        # Into a pipe tables are as wide as they want to be, unless COLUMNS is set.
        env={name: value for name, value in environment.items() if name != "COLUMNS"},
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _replace_the_class(module: Path, code: str) -> None:
    head, found, _ = module.read_text(encoding="utf-8").partition("class WholeWords")
    assert found
    module.write_text(head + code, encoding="utf-8")
