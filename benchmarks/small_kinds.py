"""End tasks of every kind, made of the paragraphs of :mod:`benchmarks.small_task`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

SPACE = """\
name: few
summary: few objectives
data: [task, end-task-rows]
transform: [mask, no-op]
representation: [bidirectional, left-to-right]
output: [end-task, denoise]
"""


def _sets(text: str) -> Row:
    return {"text": text, "label": [word for word in ("the", "return", "if") if word in text]}


def _numbers(text: str) -> Row:
    return {"text": text, "label": text.count(" ") / 7 + 0.25}


def _words(text: str) -> Row:
    words = text.split()
    return {"text": words, "label": ["B-UP" if word[0].isupper() else "O" for word in words]}


KINDS: Mapping[str, Callable[[str], Row]] = {
    "multi-label": _sets,
    "regression": _numbers,
    "token-labels": _words,
}
"""Makes the rows of each kind except ``single-label``, which is the small task itself."""


def write_kinds(folder: Path, task_files: Path) -> None:
    """Write train, dev and test of each kind into a folder of its name, and ``space.yaml``."""
    for kind, row in KINDS.items():
        (folder / kind).mkdir()
        for part in ("train", "dev", "test"):
            lines = (task_files / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
            rows = [json.dumps(row(json.loads(line)["text"])) + "\n" for line in lines]
            (folder / kind / f"{part}.jsonl").write_text("".join(rows), encoding="utf-8")
    (folder / "space.yaml").write_text(SPACE, encoding="utf-8")
