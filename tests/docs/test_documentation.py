"""What the documentation says is there: files, commands, options, names and defaults."""

import ast
import re
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import pytest

from aang_core import AangError, Plugins, Registry, load_plugins, load_space
from tests.docs.documents import PAGES, ROOT, aang_commands, anchors, relative_links, tables
from tests.support.commands import aang


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(environ={})


@pytest.fixture(scope="module")
def registry(plugins: Plugins) -> Registry:
    return plugins.registry


def of_every_page(check: Callable[[Path], None]) -> None:
    """Check all pages, and fail with what is wrong with each of them."""
    wrong = []
    for page in PAGES:
        try:
            check(page)
        except (AssertionError, AangError, click.ClickException, pytest.fail.Exception) as error:
            wrong.append(f"{page.relative_to(ROOT)}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_link_leads_to_a_file_and_a_heading_of_it() -> None:
    def check(page: Path) -> None:
        for link in relative_links(page):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), f"{link}: there is no such file"
            assert not anchor or anchor in anchors(target), f"{link}: there is no such heading"

    of_every_page(check)


def test_every_command_and_option_exists(registry: Registry) -> None:
    of_every_page(lambda page: _check_commands(page, registry))


def _check_commands(page: Path, registry: Registry) -> None:
    commands = aang_commands(page)
    # What a page has generated before, only its reader has.
    generated = [words[1] for words in commands if words[0] == "new-plugin"]
    for words in commands:
        context = click.Context(aang, info_name="aang")
        given, rest, _ = aang.make_parser(context).parse_args(list(words))
        if not rest:
            continue
        name, *arguments = rest
        command = aang.get_command(context, name)
        assert command is not None, f"there is no command {name}"
        # A plug-in from a file may have options, and only who has the file knows them.
        local = "local" in given
        parser = command.make_parser(click.Context(command, ignore_unknown_options=local))
        options, extra, _ = parser.parse_args(arguments)
        extra = [word for word in extra if not (local and word.startswith("--"))]
        assert not extra, f"aang {' '.join(words)}: {extra} is taken by nothing"
        for parameter in command.params:
            if isinstance(parameter.type, click.Choice) and parameter.name in options:
                parameter.type.convert(options[parameter.name], parameter, None)
        known = not any(name in word for name in generated for word in words)
        if known and "local" not in given and "disable" not in given:
            _check_names(options, registry)


def test_every_test_that_is_named_exists() -> None:
    def check(page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        for path, name in re.findall(r"`((?:tests|plugins)/[\w/-]+\.py)::(\w+)`", text):
            assert name in _functions(path), f"{path}::{name}"

    of_every_page(check)


def test_every_file_of_the_code_that_is_named_exists() -> None:
    known = [path.as_posix() for path in ROOT.rglob("*.py")]

    def check(page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`([a-z_]\w*/[\w/]+\.py)`", text):
            assert any(path.endswith(f"/{name}") for path in known), f"there is no {name}"

    of_every_page(check)


@cache
def _functions(path: str) -> set[str]:
    """Names of all functions of a file in the repository."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _check_names(options: dict[str, object], registry: Registry) -> None:
    space = str(options.get("space") or "td")
    if not space.endswith(".yaml"):
        load_space(space, registry)
    registry.weighter(str(options.get("weighter") or "factored"))
    known = {p.name for p in registry.primitives()}
    if options.get("recipe"):
        known |= set(registry.recipes.find(str(options["recipe"])).pretraining)
    known |= {str(task).partition("=")[0] for task in _several(options, "aux_task")}
    for setting in _several(options, "set"):
        assert setting.partition(".")[0] in known, f"--set {setting}"


def _several(options: dict[str, object], name: str) -> list[str]:
    values = options.get(name) or ()
    assert isinstance(values, list | tuple)
    return [str(value) for value in values]


def test_every_name_in_a_table_is_registered(plugins: Plugins) -> None:
    of_every_page(lambda page: _check_tables(page, plugins))


def _check_tables(page: Path, plugins: Plugins) -> None:
    registry = plugins.registry
    distributions = {record.origin.distribution for record in plugins.records}
    kinds: dict[str, Callable[[str], object]] = {
        "weighter": registry.weighter,
        "space": lambda name: load_space(name, registry),
        "recipe": registry.recipes.find,
        "plug-in": lambda name: name in distributions or pytest.fail(f"no plug-in {name}"),
    }
    for table in tables(page):
        for column, look_up in kinds.items():
            for cell in table.column(column):
                for name in re.findall(r"`([^`]+)`", cell):
                    _registered(name, look_up)
        rows = zip(table.column("stage"), table.column("primitive"), strict=False)
        for stage, primitive in rows:
            of_stage = {p.name for p in registry.primitives() if p.stage == stage}
            assert primitive.strip("`") in of_stage, f"there is no {stage} {primitive}"


def _registered(name: str, look_up: Callable[[str], object]) -> None:
    try:
        look_up(name)
    except AangError as error:
        pytest.fail(str(error))


def test_the_readme_of_a_plugin_names_what_it_brings(registry: Registry) -> None:
    for primitive in registry.primitives():
        readme = ROOT / "plugins" / primitive.origin.distribution / "README.md"
        if primitive.origin.distribution != "aang-core":
            assert f"`{primitive.name}`" in readme.read_text(encoding="utf-8"), primitive


def test_the_page_of_options_is_that_of_the_schema() -> None:
    """If not: python docs/site/options_page.py."""
    written = runpy.run_path(str(ROOT / "docs" / "site" / "options_page.py"))
    assert written["options_page"]() == written["PAGE"].read_text(encoding="utf-8")
