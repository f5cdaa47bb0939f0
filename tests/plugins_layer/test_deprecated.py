"""Deprecated hooks and arguments: they work, and the plug-in's record says what is deprecated."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aang_core import Plugins, hookspecs, load_plugins
from tests.support.commands import aang
from tests.support.plugins import PluginRecord

OLD_NAME = DeprecationWarning("the argument registry is deprecated; take register instead")
OLD_HOOK = FutureWarning("aang_register_commands goes; use something else instead")


@pytest.fixture
def _old_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specs of a core that has announced an argument's end."""

    def aang_register_transforms(register: Any, registry: Any) -> None: ...

    marked = hookspecs.hookspec(warn_on_impl_args={"registry": OLD_NAME})
    monkeypatch.setattr(hookspecs, "aang_register_transforms", marked(aang_register_transforms))


@pytest.fixture
def _old_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specs of a core that has announced a hook's end."""

    def aang_register_commands(register: Any) -> None: ...

    marked = hookspecs.hookspec(warn_on_impl=OLD_HOOK)
    monkeypatch.setattr(hookspecs, "aang_register_commands", marked(aang_register_commands))


def plugin(folder: Path, signature: str) -> Path:
    """A file with a hook of that signature, which calls each of its arguments once."""
    calls = [f"    {name}('mine-{i}', 's', 'a:B')" for i, name in enumerate(signature.split(", "))]
    return written(folder, f"@hookimpl\ndef aang_register_transforms({signature}):", *calls)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "mine.py"
    path.write_text("\n".join(["from aang_core import hookimpl", *lines, ""]), encoding="utf-8")
    return path


def loaded(path: Path) -> tuple[Plugins, PluginRecord]:
    plugins = load_plugins(local=[str(path)], environ={})
    return plugins, plugins.records[-1]


@pytest.mark.usefixtures("_old_argument")
@pytest.mark.parametrize("signature", ["registry", "register, registry"])
def test_a_deprecated_argument_warns_and_works(tmp_path: Path, signature: str) -> None:
    """It is handed the same, alone or beside its successor."""
    path = plugin(tmp_path, signature)
    plugins, record = loaded(path)
    assert record.status == "ok"
    assert record.warnings == (f"{path}:2: {OLD_NAME}",)
    for i in range(len(signature.split(", "))):
        assert plugins.registry.primitive("transform", f"mine-{i}").origin == record.origin


@pytest.mark.usefixtures("_old_hook")
def test_a_deprecated_hook_warns_and_works(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import click",
        "@hookimpl",
        "def aang_register_commands(register):",
        "    register('greet', 'Say hello.', click.Command('greet'))",
    )
    plugins, record = loaded(path)
    assert record.status == "ok"
    assert record.warnings == (f"{path}:3: {OLD_HOOK}",)
    assert plugins.registry.commands.find("greet").origin == record.origin


@pytest.mark.usefixtures("_old_argument")
def test_the_present_argument_warns_of_nothing(tmp_path: Path) -> None:
    _, record = loaded(plugin(tmp_path, "register"))
    assert record.warnings == ()


@pytest.mark.usefixtures("_old_argument")
def test_the_commands_say_so(tmp_path: Path) -> None:
    path = plugin(tmp_path, "registry")
    done = CliRunner().invoke(aang, ["--plugin", str(path), "plugins"])
    assert done.exit_code == 0
    said = "note: plug-in mine (mine.py"
    (line,) = [line for line in done.stderr.splitlines() if line.startswith(said)]
    assert line.endswith(f"{path}:2: {OLD_NAME}")
    done = CliRunner().invoke(aang, ["--plugin", str(path), "plugins", "--json"])
    assert json.loads(done.stdout)[-1]["warnings"] == [f"{path}:2: {OLD_NAME}"]
    done = CliRunner().invoke(aang, ["check-plugin", str(path)])
    assert done.exit_code == 1
    assert "FAILED  it uses nothing deprecated" in done.stdout
    assert "take register instead" in done.stdout


def test_without_such_a_mark_another_argument_is_refused(tmp_path: Path) -> None:
    _, record = loaded(plugin(tmp_path, "registry"))
    assert record.status == "failed"
    assert "{'registry'} are declared in the hookimpl" in str(record.error)
