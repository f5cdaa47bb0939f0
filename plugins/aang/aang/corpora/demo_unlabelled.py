"""Text like the demo task's own, without labels: what else its packages say about themselves."""

import re
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aang.corpora.demo import (
    MIN_CHARACTERS,
    PACKAGES,
    library_sources,
    paragraphs_of,
    rank,
    strip_package_names,
)
from aang.corpora.held_out import HeldOutTexts
from aang.corpora.labelled_task import LabelledTask
from aang_core.objectives.stages.data import Example

_COMMENT = re.compile(r"[ \t]*#+!?[ \t]*(.*)")


class UnlabelledParagraphs:
    """The comments in the sources of the eight packages, without the packages' names.

    The docstrings of these packages are all in the task, most of them in test. Their comments speak
    of the same things. Those that are also in dev or test are left out. They are read each time
    that they are iterated over.

    Args:
        task: the demo task.
        stdlib: folder of a standard library; by default that of the running interpreter.
    """

    def __init__(self, task: LabelledTask, stdlib: Path | None = None) -> None:
        self._task = task
        self._root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib

    def __iter__(self) -> Iterator[Example]:
        """The comments of at least 60 characters, each once, ordered by a hash."""
        held_out = HeldOutTexts(self._task)
        found: set[str] = set()
        for path, package in library_sources(self._root):
            if package in PACKAGES:
                with suppress(OSError):
                    source = path.read_text(encoding="utf-8", errors="replace")
                    found |= {strip_package_names(text) for text in comments(source)}
        for example in map(Example, sorted(found, key=rank)):
            if len(example.text) >= MIN_CHARACTERS and held_out.part_of(example) is None:
                yield example


def comments(source: str) -> Iterator[str]:
    """The paragraphs of at least 60 characters in the comments of a Python source.

    A comment is a run of lines that hold nothing else.
    """
    blocks = [""]
    for line in source.splitlines():
        match = _COMMENT.fullmatch(line)
        if match is not None:
            blocks[-1] += match[1] + "\n"
        elif blocks[-1]:
            blocks.append("")
    for block in blocks:
        yield from paragraphs_of(block)
