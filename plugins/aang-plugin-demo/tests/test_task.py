"""The demo as ``aang train`` finds it, and other end tasks that plug-ins bring."""

from pathlib import Path

import pytest

from aang_core import ReadReport, UnknownNameError, load_plugins
from tests.support.runs import prepare_sources, read_end_task, resolve_config

BROUGHT = """
from aang.corpora import LabelledTask, TaskWithTexts
from aang_core import Example, hookimpl

ROWS = tuple(Example(f"text {i}", label="even odd".split()[i % 2]) for i in range(8))


@hookimpl
def aang_register_tasks(register):
    register("parity", "is a number even?", parity)


def parity(report):
    task = LabelledTask("parity", ROWS[:4], ROWS[4:], (), ("even", "odd"))
    return TaskWithTexts(task, unlabelled=[Example("text 9")])
"""


@pytest.mark.parametrize("options", [{}, {"dataset": "demo"}])
def test_the_demo_is_found_without_data_and_by_its_name(options: dict[str, object]) -> None:
    task, draw = read_end_task(resolve_config({}, options), ReadReport())
    assert (task.name, len(task.train), len(task.dev), draw) == ("demo", 200, 200, None)


def test_another_plugin_brings_an_end_task(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BROUGHT, encoding="utf-8")
    registry = load_plugins(local=[str(file)]).registry
    options = {"dataset": "parity", "space": "unlabelled/mask/bidirectional/denoise"}
    sources = prepare_sources(resolve_config({}, options, registry), registry)
    assert (sources.task.name, sources.task.labels) == ("parity", ("even", "odd"))
    assert [example.text for example in sources.context.unlabelled or ()] == ["text 9"]


@pytest.mark.parametrize("options", [{}, {"dataset": "demo"}])
def test_without_the_plugin_it_is_named(options: dict[str, str]) -> None:
    registry = load_plugins(disable=["demo"]).registry
    with pytest.raises(UnknownNameError, match="no end task demo: aang-plugin-demo is disabled"):
        prepare_sources(resolve_config({}, options, registry), registry)
