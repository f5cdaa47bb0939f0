"""Gradient engines, dev heads, end tasks and their kinds: found by name, imported when used."""

from pathlib import Path

import pytest

from aang_core import AmbiguousNameError, PluginError, Registry, UnknownNameError, load_plugins

HOOKS = {
    "engines": "gradient engine",
    "dev_heads": "dev head",
    "task_types": "kind of end task",
    "tasks": "end task",
}


def of_file(folder: Path, body: str, name: str = "mine.py") -> Registry:
    """What a plug-in in a file registers."""
    file = folder / name
    file.write_text(f"from aang_core import hookimpl\nfrom collections import Counter\n{body}")
    plugins = load_plugins(local=[str(file)], only=[name], environ={})
    assert plugins.records[-1].status == "ok", plugins.records[-1].error
    return plugins.registry


def registering(hook: str, target: str, name: str = "mine") -> str:
    return (
        f"@hookimpl\ndef aang_register_{hook}(register):\n"
        f'    register("{name}", "in my way", {target})\n'
    )


@pytest.mark.parametrize("hook", HOOKS)
def test_each_kind_has_a_table_of_its_own(hook: str, tmp_path: Path) -> None:
    registry = of_file(tmp_path, registering(hook, '"collections:OrderedDict"'))
    tables = {name: getattr(registry, name) for name in HOOKS}
    assert {name for name, table in tables.items() if "mine" in table} == {hook}
    entry = tables[hook].find("mine")
    assert (entry.kind, entry.summary, entry.origin.distribution) == (
        HOOKS[hook],
        "in my way",
        "mine.py",
    )
    assert entry.load().__name__ == "OrderedDict"


def test_a_target_may_be_an_object(tmp_path: Path) -> None:
    registry = of_file(tmp_path, registering("engines", "Counter"))
    assert registry.engines.find("mine.py:mine").load().__name__ == "Counter"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere_at_all:Engine", "importing nowhere_at_all:Engine raised ModuleNotFoundError"),
        ("collections:nothing", "importing collections:nothing raised AttributeError"),
        ("math:pi", "math:pi is not callable"),
    ],
)
def test_a_target_that_cannot_be_used_is_the_plugins_fault(
    target: str, why: str, tmp_path: Path
) -> None:
    entry = of_file(tmp_path, registering("engines", f'"{target}"')).engines.find("mine")
    with pytest.raises(PluginError, match=f"gradient engine mine of mine.py .*: {why}"):
        entry.load()


def test_unknown_and_shared_names_are_answered_as_those_of_primitives() -> None:
    registry = load_plugins(environ={}).registry
    with pytest.raises(UnknownNameError, match="there is no dev head strange"):
        registry.dev_heads.find("strange")


def test_two_plugins_may_own_a_name(tmp_path: Path) -> None:
    files = []
    for name in ("one.py", "two.py"):
        of_file(tmp_path, registering("task_types", "Counter"), name)
        files.append(str(tmp_path / name))
    registry = load_plugins(local=files, only=["one.py", "two.py"], environ={}).registry
    with pytest.raises(AmbiguousNameError, match=r"one\.py:mine, two\.py:mine"):
        registry.task_types.find("mine")
    assert registry.task_types.find("two.py:mine").origin.distribution == "two.py"
