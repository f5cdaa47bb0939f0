"""The version of the plug-in interface, and where it is stated."""

from pathlib import Path
from types import ModuleType

import pytest

from aang_core import PLUGIN_API, PluginError
from tests.docs.documents import ROOT
from tests.support.plugins import CHANGES, DECLARATION, check_plugin_api


def module(version: object) -> ModuleType:
    made = ModuleType("hooks")
    setattr(made, DECLARATION, version)
    return made


def test_a_plugin_of_this_version_or_without_one_is_taken() -> None:
    check_plugin_api(module(PLUGIN_API))
    check_plugin_api(ModuleType("hooks"))


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (PLUGIN_API - 1, f"{CHANGES} says what changed"),
        (PLUGIN_API + 1, "update the older of the two"),
    ],
)
def test_any_other_version_is_refused(version: object, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        check_plugin_api(module(version))


def test_the_version_is_the_same_wherever_it_is_stated() -> None:
    """In the documentation and in the examples, whose authors copy it."""
    assert (ROOT / CHANGES).is_file()
    modules = list((ROOT / "examples" / "plugins").glob("*/*.py"))
    stated: dict[Path, list[str]] = {
        path: [
            line for line in path.read_text(encoding="utf-8").splitlines() if DECLARATION in line
        ]
        for path in (ROOT / "docs" / "plugins.md", *modules)
    }
    for path, lines in stated.items():
        assert any(f"{DECLARATION} = {PLUGIN_API}" in line for line in lines), path
