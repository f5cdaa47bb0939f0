"""Real plug-ins for tests: distributions written to a folder that is put on the path."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

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
        self, distribution: str, entry_points: str, *, version: str = "1.0", name: bool = True
    ) -> None:
        """Write what pip leaves behind of a distribution."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        named = f"Name: {distribution}\nVersion: {version}\n" if name else ""
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\n{named}", encoding="utf-8")
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
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python -m aang_core`` in a process of its own.

        Modules come from where the tests' own come from: a checkout on ``PYTHONPATH`` may be
        another one than is installed.
        """
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AANG_") and name not in ("COLUMNS", "PYTHONPATH")
        }
        given = {"PYTHONPATH": str(self.folder), **(environ or {})}
        path = filter(None, [given["PYTHONPATH"], os.environ.get("PYTHONPATH")])
        return subprocess.run(
            [sys.executable, "-m", "aang_core", *arguments],
            env={**clean, **given, "PYTHONPATH": os.pathsep.join(path)},
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

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


def transform(name: str) -> str:
    """The source of a hook that registers one transform."""
    return f'''
        @hookimpl
        def aang_register_transforms(register):
            register("{name}", "a transform of somebody else's", "somewhere:{name.title()}")
    '''
