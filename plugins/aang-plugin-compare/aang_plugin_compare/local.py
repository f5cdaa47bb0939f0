"""Runs as processes of this machine."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from aang.runs import usable_cores

from aang_plugin_compare.claim import attempts_so_far
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.leashed import command


class LocalLauncher:
    """Starts a process for each run, which ends at once if this process dies.

    Args:
        jobs: number of processes that run at the same time and share the cores.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.at_once = jobs
        self._lock = Lock()
        self._stopped = False
        self._running: dict[Path, subprocess.Popen[str]] = {}

    def ready(self) -> None:
        """Do nothing: processes can always be started here."""

    def train(self, order: Order) -> str | None:
        attempt = attempts_so_far(order.log) + 1
        order.begin_log(attempt, "this machine")
        with order.log.open("a", encoding="utf-8") as log:
            # A terminal sends an interrupt to its whole process group. In a group of its own, the
            # process only gets the signal sent from here; a second one would end it at once.
            process = subprocess.Popen(
                command(order, attempt, "this machine"),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                env=self._environment(),
                process_group=0,
            )
            with self._lock:
                self._running[order.folder] = process
                if self._stopped:
                    process.send_signal(signal.SIGTERM)
            # The process ends when its input closes, so that stays open until it has ended.
            with process:
                status = process.wait()
            with self._lock:
                del self._running[order.folder]
        return None if status == 0 else order.failure(status)

    def end(self, order: Order) -> bool:
        with self._lock:
            process = self._running.get(order.folder)
            if process is not None:
                process.send_signal(signal.SIGTERM)
        return process is not None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running.values():
                process.send_signal(signal.SIGTERM)

    def _environment(self) -> Mapping[str, str]:
        # Processes that each use every core slow each other down.
        threads = max(1, usable_cores() // self.at_once)
        # A thread that waits at a barrier must not keep a core from the process that it waits for.
        return {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", **os.environ}
