"""The site builds without a warning, and the hooks are documented to the last argument."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from aang_core import hookspecs, load_plugins
from tests.docs.documents import ROOT, tables
from tests.docs.tutorial import PAGE
from tests.support.plugins import hook_names

pytestmark = pytest.mark.release

REGISTERING = [name for name in hook_names() if name.startswith("aang_register_")]


@pytest.mark.parametrize("name", REGISTERING)
def test_every_hook_and_every_argument_is_documented(name: str) -> None:
    """What a hook is for, and each argument of the ``register`` that it is handed."""
    hook = getattr(hookspecs, name)
    assert list(inspect.signature(hook).parameters) == ["register"]
    assert len(inspect.getdoc(hook) or "") > 40
    protocol = get_type_hints(hook, vars(hookspecs) | {"click": None})["register"]
    call = vars(protocol)["__call__"]
    entries = re.findall(r"(?:^|\. )([a-z_, ]+): ", inspect.getdoc(call) or "", re.MULTILINE)
    documented = {argument.strip() for entry in entries for argument in entry.split(", ")}
    assert documented == set(inspect.signature(call).parameters) - {"self"}


@pytest.mark.parametrize("name", sorted({*hook_names()} - {*REGISTERING}))
def test_every_argument_of_a_later_hook_is_documented(name: str) -> None:
    hook = getattr(hookspecs, name)
    text = inspect.getdoc(hook) or ""
    documented = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2], re.MULTILINE)
    assert set(documented) - {"AangError", "ConfigError"} == set(inspect.signature(hook).parameters)


def test_every_trait_is_explained_where_authors_look() -> None:
    """In the hook of the stage that provides it, and in the tutorial's table, each at its stage."""
    (table,) = (table for table in tables(PAGE) if table.header[0] == "trait")
    rows = {row[0].strip("`"): row[1] for row in table.rows}
    in_use = {("labels:own", "data")}  # Of --aux-task, which no plug-in registers.
    registry = load_plugins(environ={}).registry
    for primitive in registry.primitives():
        in_use |= {(trait, primitive.stage) for trait in primitive.provides}
        assert {
            re.sub("^end-task:.*", "end-task:KIND", of) for of in primitive.requires
        } <= rows.keys()
    assert set(rows.items()) == {*in_use, ("end-task:KIND", "the end task")}
    assert "``end-task:KIND``" in (inspect.getdoc(hookspecs.aang_register_outputs) or "")
    for trait, stage in in_use:
        hook = f"aang_register_{stage}" + "s" * (stage != "data")
        assert f"``{trait}``" in (inspect.getdoc(getattr(hookspecs, hook)) or "")


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    environment = {**os.environ, "DISABLE_MKDOCS_2_WARNING": "true", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "does not contain an anchor" not in done.stderr
    commands = (tmp_path / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    for command in ("aang train", "aang compare", "aang new-plugin"):
        assert command in commands
    hooks = (tmp_path / "reference" / "hooks" / "index.html").read_text(encoding="utf-8")
    assert all(name in hooks for name in hook_names())
