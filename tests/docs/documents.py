"""What the documentation's pages hold: headings, links, tables and commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks" / "results").glob("*.md"),
        ROOT / "tests" / "reliability.md",
        *(ROOT / "plugins").glob("*/README.md"),
    ]
)

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SHELL = {"", "bash", "sh", "console"}


@dataclass(frozen=True)
class Table:
    """A table: its header and its rows, each cell without the space around it."""

    header: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> list[str]:
        """The cells under ``name``; none if there is no such column."""
        if name not in self.header:
            return []
        return [row[self.header.index(name)] for row in self.rows]


def without_code(page: Path) -> str:
    """The page without its fenced code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link to the page may have behind its #, made from the headings as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def relative_links(page: Path) -> list[str]:
    """The targets of all links that lead to a file or within the page."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def tables(page: Path) -> list[Table]:
    """All tables of the page."""
    found: list[Table] = []
    lines: list[list[str]] = []
    for line in [*without_code(page).splitlines(), ""]:
        if line.strip().startswith("|"):
            lines.append([cell.strip() for cell in line.strip().strip("|").split(" | ")])
        elif lines:
            header, _, *rows = lines
            found.append(Table([cell.strip(" |") for cell in header], rows))
            lines = []
    return found


def aang_commands(page: Path) -> list[list[str]]:
    """The arguments of every call of ``aang`` in the page's code blocks."""
    return [words[1:] for words in _shell_commands(page) if words[:1] == ["aang"]]


def _shell_commands(page: Path) -> Iterator[list[str]]:
    for language, block in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language not in _SHELL:
            continue
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            # In a console block whatever has no prompt is output.
            prompt = re.match(r"\s*\$ ", line)
            if prompt or language != "console":
                for command in line.strip().removeprefix("$ ").split("&&"):
                    yield shlex.split(command, comments=True)
