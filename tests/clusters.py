"""A Ray cluster of several nodes on this machine, each of which can be killed."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

TRIES = 4
"""How often a node is started before a test fails."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """``ray start`` in processes of their own, behind a token; the first node is the head.

    folder: for the token and what Ray says. address: of the cluster; environment: of commands that
    use it.
    """

    def __init__(self, folder: Path) -> None:
        token = folder / "token"
        token.write_text(secrets.token_hex(32), encoding="utf-8")
        self.environment: Mapping[str, str] = {
            "RAY_raylet_start_wait_time_s": "90",  # on a busy machine
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._folder = folder
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"{socket.gethostbyname(socket.gethostname())}:{free_port()}"

    def start(self, name: str, cpus: int = 1, gpus: int = 0) -> None:
        """Start a node and wait until it has joined; it says that it has so many GPUs."""
        host, _, port = self.address.rpartition(":")
        where = ["--address", self.address] if self._nodes else ["--head", "--port", port]
        if not self._nodes:
            where += ["--node-ip-address", host, "--include-dashboard=false", "--no-monitor"]
        command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", *where, "--block"),
            *("--node-name", name, "--num-cpus", str(cpus), "--num-gpus", str(gpus)),
            *("--object-store-memory", str(80 * 2**20), "--include-log-monitor=false"),
        ]
        output = self._folder / f"{name}.txt"
        # A node gives up if one of its processes takes 15 seconds to start, as on a busy machine.
        for _ in range(TRIES):
            with output.open("wb") as log:
                self._nodes[name] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.environment,
                    start_new_session=True,
                )
            if self._has_joined(name, output):
                return
            self.end(name)
        raise AssertionError(output.read_text())

    def _has_joined(self, name: str, output: Path) -> bool:
        end = time.monotonic() + 300
        while "Ray runtime started" not in output.read_text():
            if self._nodes[name].poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def kill(self, name: str) -> None:
        """The process that is the node, and not those that it has started."""
        for process in psutil.Process(self._nodes[name].pid).children(recursive=True):
            if process.name() == "raylet":
                process.kill()

    def end(self, name: str) -> None:
        """Kill everything that runs on a node, as if its machine had lost power."""
        node = self._nodes.pop(name)
        for process in psutil.process_iter():
            if _session(process.pid) == node.pid:
                process.kill()
        node.wait()

    def close(self) -> None:
        for name in list(self._nodes):
            self.end(name)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
