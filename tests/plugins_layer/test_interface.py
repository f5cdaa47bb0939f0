"""The version of the plug-in interface, and where it is stated."""

import re
from types import ModuleType

import pytest

from aang_core import PLUGIN_API, PluginError
from tests.docs.documents import PAGES, ROOT
from tests.support.plugins import DECLARATION, check_plugin_api


def module(version: object) -> ModuleType:
    made = ModuleType("hooks")
    setattr(made, DECLARATION, version)
    return made


def test_a_plugin_of_this_version_or_without_one_is_taken() -> None:
    check_plugin_api(module(PLUGIN_API))
    check_plugin_api(ModuleType("hooks"))


def test_any_other_version_is_refused() -> None:
    with pytest.raises(PluginError, match="update the older of the two"):
        check_plugin_api(module(PLUGIN_API + 1))


def test_the_version_is_the_same_wherever_it_is_stated() -> None:
    """In the documentation and in the examples, whose authors copy it."""
    files = [*PAGES, *(ROOT / "examples" / "plugins").glob("*/*.py")]
    stated = {
        path: re.findall(rf"{DECLARATION} = (\d+)", path.read_text(encoding="utf-8"))
        for path in files
    }
    assert {number for numbers in stated.values() for number in numbers} == {str(PLUGIN_API)}
    assert sum(map(bool, stated.values())) > 5
