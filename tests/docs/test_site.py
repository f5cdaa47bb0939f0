"""The site builds without a warning, and the hooks are documented to the last argument."""

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from aang_core import hookspecs
from aang_core.plugins.hooks import hook_names
from tests.docs.documents import ROOT


@pytest.mark.parametrize("name", hook_names())
def test_every_hook_and_every_argument_is_documented(name: str) -> None:
    """What a hook is for, and each argument of the ``register`` that it is handed."""
    hook = getattr(hookspecs, name)
    assert len(inspect.getdoc(hook) or "") > 40
    protocol = get_type_hints(hook, vars(hookspecs) | {"click": None})["register"]
    call = vars(protocol)["__call__"]
    documentation = inspect.getdoc(call) or ""
    for argument in list(inspect.signature(call).parameters)[1:]:
        if argument != "command":
            assert argument in documentation or argument in (inspect.getdoc(hook) or ""), argument


@pytest.mark.slow
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
