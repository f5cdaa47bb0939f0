"""A command together with plug-ins that are broken in every possible way."""

import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from aang_core import load_plugins
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
    "sys-exit": Broken("import sys\nsys.exit(3)\n", ("_hooks.py:3", "sys.exit(3)")),
    "exit-in-hook": Broken(
        hook("raise SystemExit('bye')"), ("_hooks.py:4, in aang_register_transforms", "'bye'")
    ),
    "own-base-exception": Broken(
        "class Gone(BaseException): pass\nraise Gone('far away')\n",
        ("_hooks.py:3", "Gone: far away"),
    ),
    "generator-exit": Broken("raise GeneratorExit\n", ("_hooks.py:2", "GeneratorExit")),
    "interrupt": Broken("raise KeyboardInterrupt\n", ("_hooks.py:2", "KeyboardInterrupt. Report")),
    "interrupt-in-hook": Broken(
        hook("raise KeyboardInterrupt('why not')"),
        ("_hooks.py:4, in aang_register_transforms", "KeyboardInterrupt: why not"),
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
        ("_hooks.py:2", "no hook aang_registr_data; did you mean aang_register_data?"),
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
        ("_hooks.py:2", "aang_register_data must take exactly one argument, named register"),
    ),
    "argument-too-many": Broken(
        hook("pass", "def aang_register_data(register, config):"),
        ("aang_register_data must take exactly one argument, named register",),
    ),
    "no-argument": Broken(
        hook("pass", "def aang_register_data():"),
        ("aang_register_data must take exactly one argument, named register",),
    ),
    "generator": Broken(hook(f"{GOOD}; yield"), ("aang_register_transforms is a generator",)),
    "coroutine": Broken(
        hook(GOOD, "async def aang_register_data(register):"), ("or a coroutine", "plain function")
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
        ("provides must be a tuple of strings, not 'text'", "comma"),
    ),
    "bad-trait": Broken(
        hook('register("fine", "s", "a:b", requires=("Text!",))'), ("requires holds 'Text!'",)
    ),
    "number-as-trait": Broken(
        hook('register("fine", "s", "a:b", requires=(1,))'), ("requires holds 1",)
    ),
    "target-without-colon": Broken(
        hook('register("fine", "s", "a.b")'), ("must read 'module:object', not 'a.b'",)
    ),
    "target-not-callable": Broken(
        hook('register("fine", "s", 12)'), ("must be callable", "not 12")
    ),
    "space-without-file": Broken(
        hook('register("s", "s", "/nowhere.yaml")', "def aang_register_spaces(register):"),
        ("space 's': there is no file /nowhere.yaml",),
    ),
    "space-of-number": Broken(
        hook('register("s", "s", 3)', "def aang_register_spaces(register):"),
        ("space 's': give the path of a YAML file or a mapping, not 3",),
    ),
    "bad-objective": Broken(
        hook('register("o", "s", "task//b/c")', "def aang_register_objectives(register):"),
        ("objective 'o': 'task//b/c' is not an objective",),
    ),
    "recipe-of-one-string": Broken(
        hook('register("r", "s", pretraining="tapt")', "def aang_register_recipes(register):"),
        ("recipe 'r': pretraining must be a tuple of strings, not 'tapt'", "comma"),
    ),
    "recipe-after-nothing": Broken(
        hook('register("r", "s", pretraining=("a/b",))', "def aang_register_recipes(register):"),
        ("recipe 'r': pretraining holds 'a/b'",),
    ),
    "recipe-of-a-list": Broken(
        hook('register("r", "s", options=[1])', "def aang_register_recipes(register):"),
        ("recipe 'r': the options must be a mapping by name, not [1]",),
    ),
    "recipe-with-odd-set": Broken(
        hook(
            'register("r", "s", options={"set": {"static": 3}})',
            "def aang_register_recipes(register):",
        ),
        ("recipe 'r': its option set must hold options by the name",),
    ),
    "no-click-command": Broken(
        hook('register("c", "s", print)', "def aang_register_commands(register):"),
        ("is not a click command", "@click.command"),
    ),
    "empty-grid": Broken(
        hook('register("g", "s", {})', "def aang_register_grids(register):"),
        ("grid 'g': give the values to try by option, not {}",),
    ),
    "grid-of-a-string": Broken(
        hook('register("g", "s", {"lr": "1e-4"})', "def aang_register_grids(register):"),
        ("grid 'g': lr: give a list of values, not '1e-4'",),
    ),
    "grid-without-values": Broken(
        hook('register("g", "s", {"lr": ()})', "def aang_register_grids(register):"),
        ("grid 'g': lr has no value to try",),
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
        ("bad-value", "names no module"),
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


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT interrupts, also where the tests run in the background and a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_is_the_users_and_ends_the_command(site: Site) -> None:
    """Unlike a KeyboardInterrupt that the plug-in raises, which only fails the plug-in."""
    source = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
    site.plugin("aang-plugin-slow", source)
    done = site.aang("plugins", anew=True)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"


@pytest.mark.usefixtures("interrupts")
def test_after_loading_an_interrupt_is_what_it_was_before() -> None:
    """The handler that tells the two apart is in place while plug-ins load, and no longer."""
    before = signal.getsignal(signal.SIGINT)
    load_plugins(environ={})
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def unreadable(site: Site, distribution: str, content: bytes | None) -> None:
    """A distribution whose entry_points.txt is not text, or a folder."""
    site.metadata(distribution, "")
    (path,) = site.folder.glob(f"{distribution.replace('-', '_')}-*/entry_points.txt")
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)


def test_a_distribution_that_cannot_be_read_is_listed(site: Site) -> None:
    """It may hold a plug-in. Commands that list no plug-ins do not mention it."""
    unreadable(site, "x-folder", None)
    assert site.aang("list-spaces").stderr == ""
    unknown = site.aang("show-space", "task/no-such-thing/bidirectional/denoise")
    assert "not loaded: x-folder; see aang plugins" in unknown.stderr
    unreadable(site, "x-latin", b"[aang]\nx = caf\xe9\n")
    # In this process the library has been imported already.
    read_by_a_library = site.aang("list-spaces", anew=True)
    assert read_by_a_library.returncode == 2
    assert "aang plugins names the package: reinstall it" in read_by_a_library.stderr
    assert "Traceback" not in read_by_a_library.stderr
    rows = {row["distribution"]: row for row in site.json("plugins")}
    assert rows["x-latin"]["status"] == rows["x-folder"]["status"] == "unreadable"
    assert "entry_points.txt cannot be read (it is not UTF-8 text)" in rows["x-latin"]["error"]
    assert "(Is a directory); reinstall x-folder" in rows["x-folder"]["error"]
    done = site.aang("plugins", "--check")
    assert done.returncode == 0
    assert "x-folder" in done.stdout


def test_a_plugin_by_its_name_that_cannot_be_read_has_failed(site: Site) -> None:
    unreadable(site, "aang-plugin-folder", None)
    assert site.statuses()["aang-plugin-folder"] == "failed"
    assert "reinstall aang-plugin-folder" in site.aang("list-spaces").stderr


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


def test_nothing_can_be_registered_once_the_hook_has_returned(site: Site) -> None:
    """A plug-in that keeps ``register`` for later gets an error rather than silence."""
    site.plugin(
        "aang-plugin-late",
        """
        import click
        kept = []

        @hookimpl
        def aang_register_transforms(register):
            kept.append(register)

        @hookimpl
        def aang_register_commands(register):
            register("late", "registers too late", late)

        @click.command()
        def late():
            kept[0]("late", "too late", "a:b")
        """,
    )
    done = site.aang("late")
    assert done.returncode == 2
    assert "transform 'late' was registered after the hook had returned" in done.stderr
