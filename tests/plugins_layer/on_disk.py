"""Real plug-ins for tests: distributions written to a folder that is put on the path."""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import mock

from aang_core.cli import main

PREAMBLE = "from aang_core import hookimpl\n"


@dataclass(frozen=True)
class Site:
    """A folder of distributions, and the ``aang`` command that finds them besides the installed.

    folder: what goes on the path.
    """

    folder: Path

    def module(self, name: str, source: str) -> None:
        """Write a module, dotted names making packages."""
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")

    def metadata(
        self,
        distribution: str,
        entry_points: str,
        *,
        version: str = "1.0",
        name: bool = True,
        requires: Iterable[str] = (),
    ) -> None:
        """Write what pip leaves behind of a distribution."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        named = f"Name: {distribution}\nVersion: {version}\n" if name else ""
        required = "".join(f"Requires-Dist: {one}\n" for one in requires)
        content = f"Metadata-Version: 2.1\n{named}{required}"
        info.joinpath("METADATA").write_text(content, encoding="utf-8")
        info.joinpath("entry_points.txt").write_text(dedent(entry_points), encoding="utf-8")

    def plugin(
        self,
        distribution: str,
        source: str,
        *,
        entry_point: str | None = None,
        version: str = "1.0",
        preamble: str = PREAMBLE,
    ) -> None:
        """Write a distribution with one entry point, whose hooks module has the given source."""
        module = f"{distribution.replace('-', '_')}_hooks"
        self.module(module, preamble + dedent(source))
        point = entry_point or distribution.removeprefix("aang-plugin-")
        self.metadata(distribution, f"[aang]\n{point} = {module}\n", version=version)

    def aang(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        anew: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``aang`` as a user does who has the plug-ins of this folder too.

        Args:
            arguments: its arguments.
            environ: more variables of the environment; ``PYTHONPATH`` is put before the modules'
                own path.
            cwd: the working directory; by default this folder.
            anew: start a process for it, which takes ten times as long.
        """
        given = {"PYTHONPATH": str(self.folder), **(environ or {})}
        run = _in_a_new_process if anew else _in_this_process
        return run(arguments, _clean_environment() | given, cwd or self.folder)

    def json(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Any:
        """What a successful command prints with ``--json``."""
        done = self.aang(*arguments, "--json", environ=environ)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def statuses(self, *arguments: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The status of every plug-in by distribution."""
        rows = self.json(*arguments, "plugins", environ=environ)
        return {row["distribution"]: row["status"] for row in rows}

    def primitives(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> dict[str, list[str]]:
        """The names of the primitives by distribution."""
        names: dict[str, list[str]] = {}
        for row in self.json(*arguments, "list-primitives", environ=environ):
            names.setdefault(row["distribution"], []).append(row["name"])
        return names


def _clean_environment() -> dict[str, str]:
    """What the shell of a user has: nothing that these tests or ``aang`` itself have set."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AANG_") and name not in ("COLUMNS", "OMP_WAIT_POLICY", "PYTHONPATH")
    }


def _in_a_new_process(
    arguments: tuple[str, ...], environ: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Modules come from where the tests' own come from, which may be another checkout."""
    path = filter(None, [environ["PYTHONPATH"], os.environ.get("PYTHONPATH")])
    return subprocess.run(
        [sys.executable, "-m", "aang_core", *arguments],
        env={**environ, "PYTHONPATH": os.pathsep.join(path)},
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def _in_this_process(
    arguments: tuple[str, ...], environ: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    code: object = 0
    out, err = io.StringIO(), io.StringIO()
    with (
        _modules_of(environ["PYTHONPATH"].split(os.pathsep)),
        mock.patch.dict(os.environ, environ, clear=True),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    assert code is None or isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code or 0, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _modules_of(path: list[str]) -> Iterator[None]:
    """Find modules in these folders first, and forget them and those of local files afterwards."""
    ours = set(filter(None, sys.path))
    theirs = {file.stem for folder in path for file in Path(folder).iterdir()}
    # Another test may have left modules of these names.
    before = {n: module for n, module in sys.modules.items() if n.partition(".")[0] in theirs}
    for name in before:
        del sys.modules[name]
    loaded = set(sys.modules)
    # A module that is written again within a second must not be taken from its compiled file.
    with (
        mock.patch.object(sys, "path", [*path, *sys.path]),
        mock.patch.object(sys, "dont_write_bytecode", True),
    ):
        importlib.invalidate_caches()
        try:
            yield
        finally:
            for name in set(sys.modules) - loaded:
                file = getattr(sys.modules[name], "__file__", None)
                if not file or not any(Path(file).is_relative_to(folder) for folder in ours):
                    del sys.modules[name]
            sys.modules.update(before)
    importlib.invalidate_caches()


def transform(name: str) -> str:
    """The source of a hook that registers one transform."""
    return f'''
        @hookimpl
        def aang_register_transforms(register):
            register("{name}", "a transform of somebody else's", "somewhere:{name.title()}")
    '''
