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
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._folder = folder
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"{socket.gethostbyname(socket.gethostname())}:{free_port()}"

    def start(self, name: str, cpus: int = 1) -> None:
        host, _, port = self.address.rpartition(":")
        where = ["--address", self.address] if self._nodes else ["--head", "--port", port]
        if not self._nodes:
            where += ["--node-ip-address", host, "--include-dashboard=false"]
        output = self._folder / f"{name}.txt"
        with output.open("wb") as log:
            self._nodes[name] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ray.scripts.scripts", "start", *where, "--block"),
                    *("--node-name", name, "--num-cpus", str(cpus)),
                    *("--object-store-memory", str(80 * 2**20)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        end = time.monotonic() + 300
        while "Ray runtime started" not in output.read_text():
            assert self._nodes[name].poll() is None, output.read_text()
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """The process that is the node, and not those that it has started."""
        for process in psutil.Process(self._nodes[name].pid).children(recursive=True):
            if process.name() == "raylet":
                process.kill()

    def close(self) -> None:
        for node in self._nodes.values():
            for process in psutil.process_iter():
                if _session(process.pid) == node.pid:
                    process.kill()
            node.wait()


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
