"""Every public name shows how it is used, and what it shows is true."""

import doctest
import inspect

import pytest

import aang_core

# Numbers, lists of words and exceptions need no example, and hookimpl is an object of pluggy's,
# which the examples of the Register protocols use.
EXEMPT = {
    *("PLUGIN_API", "SELECTION_RATE", "STAGES", "Signal", "Stage", "View", "hookimpl"),
    *("AmbiguousNameError", "ConfigError", "DataError", "ModelError", "PluginError"),
    "UnknownNameError",
}
# Names that have no example yet. A name leaves this list when it gets one, and none joins it.
LACKING = {
    *("FitResult", "Objective", "OptimizerSettings", "Origin", "Plugins", "Primitive", "Registry"),
    *("Run", "Space", "fit", "load_plugins", "load_space", "number_option", "sample_size_option"),
    *("scores", "train"),
}
NAMES = [name for name in aang_core.__all__ if name not in EXEMPT]


def _example(name: str) -> doctest.DocTest:
    # Without the names of the module it stands in: a reader does not have them either.
    text = inspect.cleandoc(getattr(aang_core, name).__doc__ or "")
    return doctest.DocTestParser().get_doctest(text, {}, name, None, None)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    assert name in LACKING or _example(name).examples


@pytest.mark.parametrize("name", [name for name in NAMES if _example(name).examples])
def test_the_example_prints_what_it_says(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AANG_CACHE", str(folder / "cache"))
    told: list[str] = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
        _example(name), out=told.append
    )
    assert not failed.failed, "".join(told)


def test_exempt_names_are_public() -> None:
    assert set(aang_core.__all__) >= EXEMPT | LACKING
