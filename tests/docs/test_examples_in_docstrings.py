"""Every public name shows how it is used, and every example prints what it says."""

import doctest
import inspect
from pathlib import Path

import pytest

import aang_core

# Numbers, lists of words and exceptions need no example, and hookimpl is an object of pluggy's,
# which the examples of the Register protocols use.
EXEMPT = {
    *("PLUGIN_API", "SELECTION_RATE", "STAGES", "Signal", "Stage", "View", "hookimpl"),
    *("AmbiguousNameError", "ConfigError", "DataError", "LockedError", "ModelError"),
    *("PluginError", "SharedError", "UnknownNameError"),
}
NAMES = [name for name in aang_core.__all__ if name not in EXEMPT]
PRIMITIVES = aang_core.load_plugins(environ={}).registry.primitives()


def _example(what: object, name: str) -> doctest.DocTest:
    # Without the names of the module it stands in: a reader does not have them either.
    text = inspect.cleandoc(what.__doc__ or "")
    return doctest.DocTestParser().get_doctest(text, {}, name, None, None)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AANG_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    example = _example(getattr(aang_core, name), name)
    assert example.examples
    _run(example)


def test_the_examples_of_primitives() -> None:
    """Where they have one; doctest says which one is wrong."""
    for primitive in PRIMITIVES:
        _run(_example(primitive.load(), primitive.name))


def _run(example: doctest.DocTest) -> None:
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert not result.failed, "".join(said)


def test_exempt_names_are_public() -> None:
    assert set(aang_core.__all__) >= EXEMPT
