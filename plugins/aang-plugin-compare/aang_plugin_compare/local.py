"""Runs as processes of this machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from threading import Lock

from aang_plugin_compare.launcher import Order


class LocalLauncher:
    """Starts a process for each run.

    Args:
        jobs: number of processes that run at the same time and share the cores.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.at_once = jobs
        self._lock = Lock()
        self._stopped = False
        self._running: set[subprocess.Popen[str]] = set()

    def ready(self) -> None:
        """Do nothing: processes can always be started here."""

    def train(self, order: Order) -> str | None:
        command = [sys.executable, "-m", "aang_core", *order.arguments]
        with order.log.open("a", encoding="utf-8") as log:
            # A terminal sends an interrupt to its whole process group. In a group of its own, the
            # process only gets the signal sent from here; a second one would end it at once.
            process = subprocess.Popen(
                command, stdout=log, stderr=log, text=True, env=self._environment(), process_group=0
            )
            with self._lock:
                self._running.add(process)
                if self._stopped:
                    process.send_signal(signal.SIGTERM)
            status = process.wait()
            with self._lock:
                self._running.discard(process)
        return None if status == 0 else order.failure(status)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGTERM)

    def _environment(self) -> Mapping[str, str]:
        # Processes that each use every core slow each other down.
        threads = max(1, (os.cpu_count() or 1) // self.at_once)
        return {"OMP_NUM_THREADS": str(threads), **os.environ}
