"""A command together with plug-ins that are broken in every possible way."""

import signal
from typing import Any, NamedTuple

import pytest

from tests.plugins_layer.on_disk import PREAMBLE, Site, transform


class Broken(NamedTuple):
    """A plug-in's source and what its error must say."""

    source: str
    says: tuple[str, ...]
    preamble: str = PREAMBLE


def hook(body: str, signature: str = "def aang_register_transforms(register):") -> str:
    return f"@hookimpl\n{signature}\n    {body}\n"


GOOD = 'register("good", "fine by itself", "somewhere:Good")'

BROKEN = {
    "import-error": Broken(
        "import a_module_that_is_nowhere\n",
        ("_hooks.py:2", "No module named 'a_module_that_is_nowhere'", "Install"),
    ),
    "syntax-error": Broken("def broken(:\n", ("_hooks.py:2", "SyntaxError")),
    "null-bytes": Broken("\0", ("SyntaxError",)),
    "sys-exit": Broken("import sys\nsys.exit(3)\n", ("_hooks.py:3", "SystemExit: 3")),
    "exit-in-hook": Broken(
        hook("raise SystemExit('bye')"),
        ("_hooks.py:4, in aang_register_transforms", "SystemExit: bye"),
    ),
    "raises-in-hook": Broken(
        hook(f"{GOOD}; 1 / 0"), ("_hooks.py:4, in aang_register_transforms", "ZeroDivisionError")
    ),
    "raises-many-lines": Broken("raise ValueError('one\\ntwo')\n", ("ValueError: one two",)),
    "unprintable-error": Broken(
        "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd\n",
        ("_hooks.py:4", "Odd: (its message cannot be shown)"),
    ),
    "recursion": Broken(hook("aang_register_transforms(register)"), ("RecursionError",)),
    "second-hook-raises": Broken(
        hook(GOOD, "def aang_register_data(register):") + hook("raise KeyError('late')"),
        ("_hooks.py:7, in aang_register_transforms", "KeyError"),
    ),
    "misspelled-hook": Broken(
        hook(GOOD, "def aang_registr_data(register):"),
        ("_hooks.py:2", "no hook aang_registr_data; did you mean aang_register_data"),
    ),
    "unknown-hook": Broken(
        hook(GOOD, "def quite_something_else(register):"),
        ("no hook quite_something_else", "aang_register_commands"),
    ),
    "undecorated": Broken(
        f"def aang_register_data(register):\n    {GOOD}\n",
        ("_hooks.py:2", "aang_register_data is not decorated", "@hookimpl"),
    ),
    "undecorated-and-misspelled": Broken(
        f"def aang_registr_data(register):\n    {GOOD}\n", ("aang_registr_data is not decorated",)
    ),
    "half-decorated": Broken(
        hook(GOOD) + f"def aang_register_data(register):\n    {GOOD}\n",
        ("_hooks.py:5", "aang_register_data is not decorated"),
    ),
    "wrong-argument": Broken(
        hook("pass", "def aang_register_data(registry):"),
        ("aang_register_data", "Argument(s) {'registry'} are declared in the hookimpl but"),
    ),
    "argument-too-many": Broken(
        hook("pass", "def aang_register_data(register, config):"),
        ("aang_register_data", "Argument(s) {'config'} are declared in the hookimpl but"),
    ),
    "no-hooks": Broken("", ("implements no hook", "@hookimpl")),
    "twice": Broken(
        hook(f"{GOOD}; {GOOD}"), ("_hooks.py:4", "transform 'good' is registered twice", "rename")
    ),
    "bad-name": Broken(
        hook('register("Bad Name", "s", "a:b")'), ("'Bad Name'", "must match [a-z0-9-]+")
    ),
    "empty-name": Broken(hook('register("", "s", "a:b")'), ("must match [a-z0-9-]+",)),
    "name-with-newline": Broken(hook('register("a\\n", "s", "a:b")'), ("must match",)),
    "name-no-text": Broken(hook('register(7, "s", "a:b")'), ("transform 7", "must match")),
    "no-summary": Broken(
        hook('register("fine", target="a:b")'), ("_hooks.py:4", "TypeError", "'summary'")
    ),
    "blank-summary": Broken(
        hook('register("fine", " ", "a:b")'), ("transform 'fine': the summary must be one line",)
    ),
    "summary-of-two-lines": Broken(
        hook('register("fine", "a\\nb", "a:b")'), ("the summary must be one line",)
    ),
    "summary-with-escape": Broken(
        hook('register("fine", "\\x1b[31mred", "a:b")'), ("the summary must be one line",)
    ),
    "bare-string-trait": Broken(
        hook('register("fine", "s", "a:b", provides=("text"))'),
        ("provides must be a tuple or a list, not 'text'", "comma"),
    ),
    "bad-trait": Broken(
        hook('register("fine", "s", "a:b", requires=("Text!",))'), ("requires holds 'Text!'",)
    ),
    "number-as-trait": Broken(
        hook('register("fine", "s", "a:b", requires=(1,))'), ("requires holds 1",)
    ),
    "target-without-colon": Broken(
        hook('register("fine", "s", "a.b")'), ("'a.b' must read 'module:object'",)
    ),
    "space-of-number": Broken(
        hook('register("s", "s", 3)', "def aang_register_spaces(register):"),
        ("_hooks.py:4, in aang_register_spaces", "TypeError", "not int"),
    ),
    "recipe-of-one-string": Broken(
        hook('register("r", "s", pretraining="tapt")', "def aang_register_recipes(register):"),
        ("recipe 'r': pretraining must be a tuple or a list, not 'tapt'", "comma"),
    ),
    "grid-of-a-string": Broken(
        hook('register("g", "s", {"lr": "1e-4"})', "def aang_register_grids(register):"),
        ("grid 'g': lr must be a tuple or a list, not '1e-4'",),
    ),
}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """All broken plug-ins at once, and two good ones around them."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.plugin("aang-plugin-aaa", transform("first"))
    site.plugin("aang-plugin-zzz", transform("last"))
    for name, broken in BROKEN.items():
        site.plugin(f"aang-plugin-x-{name}", broken.source, preamble=broken.preamble)
    site.metadata("aang-plugin-x-no-module", "[aang]\nno-module = nowhere_at_all.hooks\n")
    site.metadata("aang-plugin-x-no-object", "[aang]\nno-object = json:nothing\n")
    site.metadata("aang-plugin-x-bad-value", "[aang]\nbad-value = not a module!\n")
    site.metadata("aang-plugin-x-bad-file", "[aang]\nthis is no entry point\n")
    site.metadata("x-nameless", "[aang]\nnameless = nowhere_at_all\n", name=False)
    site.metadata("x-unrelated", "[console_scripts]\nthis is no entry point\n")
    return site


@pytest.fixture(scope="module")
def records(crowd: Site) -> dict[str, dict[str, Any]]:
    return {row["entry_point"]: row for row in crowd.json("plugins")}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_fails_and_says_where_and_why(
    name: str, records: dict[str, dict[str, Any]]
) -> None:
    record = records[f"x-{name}"]
    assert record["status"] == "failed"
    for fragment in BROKEN[name].says:
        assert fragment in record["error"]
    assert "\n" not in record["error"]


@pytest.mark.parametrize(
    ("entry_point", "says"),
    [
        ("no-module", "No module named 'nowhere_at_all'"),
        ("no-object", "nothing"),
        ("bad-value", "AttributeError"),
        ("aang-plugin-x-bad-file", "entry_points.txt cannot be read"),
        ("nameless", "No module named 'nowhere_at_all'"),
    ],
)
def test_broken_metadata_fails_alone(
    entry_point: str, says: str, records: dict[str, dict[str, Any]]
) -> None:
    assert records[entry_point]["status"] == "failed"
    assert says in records[entry_point]["error"]


def test_metadata_that_is_not_about_aang_is_nobodys_business(
    records: dict[str, dict[str, Any]],
) -> None:
    assert not any("unrelated" in row["distribution"] for row in records.values())


def test_what_a_broken_plugin_registered_before_it_failed_is_gone(crowd: Site) -> None:
    primitives = crowd.primitives()
    assert primitives["aang-plugin-aaa"] == ["first"]
    assert primitives["aang-plugin-zzz"] == ["last"]
    assert primitives["aang-core"] == ["no-op", "single-task"]
    assert not [distribution for distribution in primitives if "-x-" in distribution]


def test_the_listing_for_people_names_every_failed_plugin(crowd: Site) -> None:
    done = crowd.aang("list-primitives")
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr
    for name in BROKEN:
        assert f"Plug-in x-{name} (aang-plugin-x-{name} 1.0) failed to load" in done.stdout


def test_check_tells_a_failed_plugin_by_the_exit_status(crowd: Site, site: Site) -> None:
    assert crowd.aang("plugins", "--check").returncode == 1
    site.plugin("aang-plugin-fine", transform("fine"))
    assert site.aang("plugins", "--check").returncode == 0


def test_debug_shows_the_traceback_of_a_failed_plugin(site: Site) -> None:
    site.plugin("aang-plugin-bad", BROKEN["raises-in-hook"].source)
    done = site.aang("--debug", "list-spaces")
    assert done.returncode == 0
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "Traceback" in done.stderr


def test_an_interrupt_ends_the_command(site: Site) -> None:
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    site.plugin("aang-plugin-slow", source)
    done = site.aang("plugins", anew=True)
    signal.signal(signal.SIGINT, ignored)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"


def test_a_distribution_whose_entry_points_are_no_text_is_passed_over(site: Site) -> None:
    site.metadata("aang-plugin-latin", "")
    (path,) = site.folder.glob("aang_plugin_latin-*/entry_points.txt")
    path.write_bytes(b"[aang]\nx = caf\xe9\n")
    assert "aang-plugin-latin" not in site.statuses()


def test_a_plugin_that_prints_does_not_spoil_json(site: Site) -> None:
    site.plugin("aang-plugin-loud", "print('hello')\n" + hook(f"print('world'); {GOOD}"))
    done = site.aang("list-primitives", "--plugin", "loud", "--json")
    assert done.stdout.startswith("[")
    assert "hello\nworld" in done.stderr


def test_an_optional_hook_of_a_later_core_is_let_pass(site: Site) -> None:
    site.plugin(
        "aang-plugin-modern",
        "@hookimpl(optionalhook=True)\ndef aang_register_losses(register): pass\n" + hook(GOOD),
    )
    assert site.primitives()["aang-plugin-modern"] == ["good"]
