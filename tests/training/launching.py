"""One command line in several processes, and what their run wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def launch(processes: int, *arguments: object, module: str = "aang_core") -> list[str]:
    """Start ``aang`` in several processes, as ``torchrun`` and ``accelerate launch`` do."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [sys.executable, *launcher, "-m", module, *map(str, arguments)]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def finished(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=300
    )


def flat(value: Any, name: str = "") -> dict[str, float]:
    """The numbers of nested mappings and lists by their path."""
    if isinstance(value, list):
        value = {str(place): part for place, part in enumerate(value)}
    if isinstance(value, dict):
        return {k: v for key, part in value.items() for k, v in flat(part, f"{name}/{key}").items()}
    return {name: float(value)} if isinstance(value, int | float) else {}


def children(pid: int) -> list[int]:
    """Processes that ``pid`` has started, the oldest first."""
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
