"""The demo as an end task, with text of its domain and of another one."""

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from aang.corpora import LabelledTask, TaskWithTexts
from aang.corpora.cache import cached_text

from aang_core.objectives.stages.data import ReadReport
from aang_plugin_demo.documentation import (
    UnlabelledParagraphs,
    load_demo_task,
    out_of_domain_paragraphs,
)


def demo(report: ReadReport) -> TaskWithTexts:
    """Read the demo task; ``report`` counts the packages that this Python lacks."""
    read = load_demo_task()
    for package in read.missing:
        report.add("package of the demo task that this Python lacks", package)
    task = LabelledTask("demo", read.train, read.dev, read.test, read.labels)
    measured = files("aang_plugin_demo") / "fine-tuning.json"
    return TaskWithTexts(
        task,
        domain=(_written("stdlib.txt", read.domain),),
        out_of_domain=(_written("reference.txt", out_of_domain_paragraphs(read)),),
        unlabelled=UnlabelledParagraphs(task),
        fine_tuning=json.loads(measured.read_text(encoding="utf-8")),
    )


def _written(name: str, texts: Iterable[str]) -> Path:
    return cached_text(f"demo/{name}", "\n".join(texts) + "\n")
