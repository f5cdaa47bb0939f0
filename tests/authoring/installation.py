"""Plug-ins installed as their users install them, and commands that find them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.documents import ROOT

EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "plugins").glob("*/pyproject.toml"))
"""The folders of the plug-ins of others."""


def installed(site: Path, *folders: Path) -> dict[str, str]:
    """Install distributions into ``site``; the environment that finds them."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    done = subprocess.run(
        [*command, *map(str, folders)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def run(environment: dict[str, str], *command: object) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m COMMAND``."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
