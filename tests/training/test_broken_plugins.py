"""Ten ways for a plug-in to be broken, and what each command says of it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.plugins_layer.on_disk import Site
from tests.support.commands import aang as command
from tests.training.conftest import Aang


def transform(name: str, target: str) -> str:
    """The source of a hook that registers one transform; ``target`` is an expression."""
    return (
        "@hookimpl\ndef aang_register_transforms(register):\n"
        f"    register({name!r}, 'a transform', {target}, provides=('masks-tokens',))\n"
    )


GOOD = transform("mine", "'somewhere:Mine'")

WRONG_SHAPE = """
class Mine:
    def __call__(self, ids, ordinary, vocabulary, generator):
        from aang_core import Corruption, select_tokens
        return Corruption(ids, select_tokens(ordinary, generator).any(dim=1))

""" + transform("mine", "Mine")


@dataclass(frozen=True)
class Kind:
    """A broken plug-in: its source, and what the commands say.

    says: in the error of ``aang plugins`` and the failure of ``aang check-plugin``; empty for a
        plug-in that loads.
    needed: what ``aang train`` says that needs the transform ``mine`` of it.
    checked: what ``aang check-plugin`` says of a plug-in that loads.
    """

    source: str
    says: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


KINDS = {
    "import-error": Kind(
        "import a_module_that_is_nowhere\n" + GOOD,
        ("_hooks.py:2", "No module named 'a_module_that_is_nowhere'", "Install what it needs"),
    ),
    "system-exit": Kind("raise SystemExit(3)\n" + GOOD, ("_hooks.py:2", "SystemExit: 3")),
    "syntax-error": Kind("def broken(:\n" + GOOD, ("_hooks.py:2", "SyntaxError")),
    "wrong-hook-name": Kind(
        GOOD.replace("transforms", "transform"),
        ("no hook aang_register_transform; did you mean aang_register_transforms",),
    ),
    "no-decorator": Kind(
        GOOD.replace("@hookimpl\n", ""),
        ("aang_register_transforms is not decorated", "put @hookimpl above it"),
    ),
    "raise-in-a-hook": Kind(
        GOOD + "    1 / 0\n",
        ("_hooks.py:5, in aang_register_transforms", "ZeroDivisionError", "plug-in's authors"),
    ),
    "registered-twice": Kind(
        GOOD + "    register('mine', 'again', 'somewhere:Mine')\n",
        ("transform 'mine' is registered twice; rename one of the two",),
    ),
    "wrong-api-version": Kind(
        "AANG_PLUGIN_API = 2\n" + GOOD,
        ("version 2 of the plug-in interface", "update the older of the two"),
    ),
    "no-such-target": Kind(
        GOOD,
        needed=(
            "transform mine of aang-plugin-no-such-target 1.0",
            "importing somewhere:Mine raised ModuleNotFoundError: No module named 'somewhere'",
            "for the authors of aang-plugin-no-such-target to repair",
            "--disable-plugin no-such-target",
        ),
        checked=(
            "FAILED  transform mine: its target can be imported",
            "No module named 'somewhere'",
            "To do:",
            "3 of 4 checks passed",
        ),
    ),
    "wrong-shape": Kind(
        WRONG_SHAPE,
        needed=(
            "transform mine of aang-plugin-wrong-shape 1.0",
            "selected: expected a tensor [B, T] = [",
            "] of bool, got [4] of bool",
            "for the authors of aang-plugin-wrong-shape to repair",
            "--disable-plugin wrong-shape",
        ),
        checked=(
            "FAILED  transform mine: its contract",
            "selected: expected a tensor [B, T] = [",
            "] of bool, got [64] of bool",
            "_hooks.py:3",
            "To do:",
        ),
    ),
}
FAILING = [name for name, kind in KINDS.items() if kind.says]
LOADING = [name for name, kind in KINDS.items() if not kind.says]

each = pytest.mark.parametrize("name", KINDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """All of them, side by side."""
    site = Site(tmp_path_factory.mktemp("site"))
    for name, kind in KINDS.items():
        site.plugin(f"aang-plugin-{name}", kind.source)
    return site


@pytest.fixture(autouse=True)
def _on_the_path(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.setenv("PYTHONPATH", str(site.folder), prepend=":")


@pytest.fixture(scope="module")
def listed(site: Site) -> dict[str, Result]:
    """What the two listing commands print, for people and for programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site.folder)
        patch.delenv("COLUMNS", raising=False)
        return {
            line: CliRunner().invoke(command, line.split())
            for line in ("plugins", "plugins --json", "list-primitives", "list-primitives --json")
        }


@each
def test_plugins_says_what_became_of_it(name: str, listed: dict[str, Result]) -> None:
    """Exit status 0: the command itself did what it was asked."""
    done = listed["plugins --json"]
    assert done.exit_code == 0
    (row,) = [r for r in json.loads(done.stdout) if r["entry_point"] == name]
    assert row["status"] == ("failed" if name in FAILING else "ok")
    for fragment in KINDS[name].says:
        assert fragment in row["error"]
    (line,) = [
        part for part in listed["plugins"].stdout.splitlines() if f"aang-plugin-{name} " in part
    ]
    assert row["status"] in line


@each
def test_list_primitives_lists_what_loaded_and_tells_the_rest(
    name: str, listed: dict[str, Result]
) -> None:
    done = listed["list-primitives --json"]
    assert done.exit_code == 0
    owners = [row["distribution"] for row in json.loads(done.stdout) if row["name"] == "mine"]
    assert (f"aang-plugin-{name}" in owners) == (name in LOADING)
    told = listed["list-primitives"].stdout
    failure = f"Plug-in {name} (aang-plugin-{name} 1.0) failed to load and registered nothing: "
    assert (failure in told) == (name in FAILING)
    assert (failure in done.stderr) == (name in FAILING)


def test_train_goes_on_where_none_of_them_is_needed(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """And names those that are absent, once each."""
    done = aang(
        *("train", *train_options, "--space", "task/mask/bidirectional/denoise"),
        *("--steps", 1, "--quiet", "--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err
    for name in FAILING:
        assert done.err.count(f"Plug-in {name} (aang-plugin-{name} 1.0) failed to load") == 1
    for name in LOADING:
        assert f"aang-plugin-{name}" not in done.err


@each
def test_train_that_needs_it_says_why_not(
    name: str,
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Status 2 and no run folder; no model is loaded unless a call is what goes wrong."""
    if name != "wrong-shape":
        train_options = [*train_options, "--model", tmp_path / "a-model-that-would-not-load"]
    done = aang(
        *("train", *train_options),
        *("--space", f"task/aang-plugin-{name}:mine/bidirectional/denoise"),
        *("--out", tmp_path / "run"),
    )
    assert done.status == 2, done.err
    (error,) = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    for fragment in KINDS[name].needed or (
        f"there is no transform aang-plugin-{name}:mine",
        f"aang-plugin-{name} is broken, see aang plugins",
    ):
        assert fragment in error
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_train_by_a_short_name_says_who_may_have_had_it(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Of a plug-in that failed nobody knows what it would have registered."""
    disabled = [word for name in LOADING for word in ("--disable-plugin", name)]
    done = aang(
        *(*disabled, "train", *train_options, "--space", "task/mine/bidirectional/denoise"),
        *("--out", tmp_path / "run"),
    )
    assert done.status == 2
    (error,) = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert "transform mine" in error
    assert " are disabled)" in error
    for name in KINDS:
        assert f"aang-plugin-{name}" in error


def test_train_by_a_name_that_two_own_names_both(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    done = aang(
        *("train", *train_options, "--space", "task/mine/bidirectional/denoise"),
        *("--out", tmp_path / "run"),
    )
    assert done.status == 2
    for name in LOADING:
        assert f"aang-plugin-{name}:mine" in done.err


@each
def test_check_plugin_says_what_fails_and_what_to_do(name: str) -> None:
    done = CliRunner().invoke(command, ["check-plugin", f"aang-plugin-{name}"])
    assert done.exit_code == 1, done.output
    kind = KINDS[name]
    for fragment in (*kind.says, *kind.checked):
        assert fragment in done.stdout
    if name in FAILING:
        assert "FAILED  it loads" in done.stdout
        assert "0 of 1 checks passed" in done.stdout
    assert "Traceback" not in done.output
