"""``aang`` in processes of its own that start at once: forked off one that has imported everything.

A fork is a real process, which can be killed and limited like any other. ``python -m
tests.training.forks`` is the process that forks; it has never computed anything.
"""

import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]

IMPORTED = (
    *("aang.cli.train", "aang.runs.train", "aang.runs.evaluate", "datasets"),
    *("transformers.models.bert.modeling_bert", "transformers.models.bert.tokenization_bert"),
    *("sklearn.metrics", "torch.optim", "torch._dynamo"),
    *("plotly.graph_objects", "plotly.offline"),
)


@dataclass(frozen=True)
class Child:
    """A process that runs ``aang``. output: a file of all that it says."""

    server: "Forks"
    pid: int
    output: Path

    @property
    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def wait(self) -> int:
        """The exit status; negative for the signal that killed it."""
        return self.server.ask({"wait": self.pid})

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def when(self, there: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until something is there, or the process is over."""
        end = time.monotonic() + seconds
        while not there() and time.monotonic() < end and self._lives():
            time.sleep(0.005)

    def _lives(self) -> bool:
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"


class Forks:
    """The process that forks, from outside."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.forks"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )

    def aang(
        self,
        *arguments: object,
        largest_file: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start ``aang``.

        largest_file: what is written beyond so many bytes of a file fails, as on a full disk.
        environment: variables to set.
        """
        self._count += 1
        output = self._folder / f"output-{self._count}.txt"
        request = {
            "arguments": [str(argument) for argument in arguments],
            "output": str(output),
            "cache": str(self._cache),
            "largest_file": largest_file,
            "environment": dict(environment or {}),
        }
        return Child(self, self.ask(request), output)

    def together(self, *commands: Sequence[object], **environment: str) -> list[Child]:
        """Start a process for each command line, all of which share one training.

        Nothing watches over them, as ``torchrun`` would: if one fails, no other is ended for it.

        environment: variables to set in all of them.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shared = {**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        shared["WORLD_SIZE"] = shared["LOCAL_WORLD_SIZE"] = str(len(commands))
        return [
            self.aang(*command, environment=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank, command in enumerate(commands)
        ]

    def ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Fork for each request that names arguments; wait for each that names a process."""
    for name in IMPORTED:
        importlib.import_module(name)
    # As in conftest.py: no test cuts the power, and reports are without plotly.js.
    os.fsync = lambda fd: None
    sys.modules["plotly.offline"].get_plotlyjs = lambda: ""  # type: ignore[attr-defined]
    from aang_core import load_plugins

    for primitive in load_plugins().registry.primitives():
        primitive.load()
    children: dict[int, Any] = {}
    for line in requests:
        request = json.loads(line)
        if "wait" in request:
            answer = children.pop(request["wait"]).wait()
        else:
            child = _forked(request)
            children[child.pid] = child
            answer = child.pid
        answers.write(f"{answer}\n")
        answers.flush()


def _forked(request: dict[str, Any]) -> Any:
    from aang_core.cli import main
    from benchmarks.kills.forked import Forked

    def run() -> None:
        os.environ.update(request["environment"], AANG_CACHE=request["cache"])
        if request["largest_file"] is not None:
            limit = request["largest_file"]
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        main(request["arguments"])

    return Forked(run, Path(request["output"]))


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
    # Taking apart all that was imported takes longer than a test.
    os._exit(0)
