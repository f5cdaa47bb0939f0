"""Runs as tasks of a Ray cluster: Ray finds a node for each and reports lost ones.

Ray's own retries are off, because Ray would not report that it retries, nor on which node.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from aang_core import AangError, ConfigError
from aang_plugin_compare import on_node
from aang_plugin_compare.claim import ask_to_end, attempts_so_far, claim_file, read_claim
from aang_plugin_compare.launcher import Launcher, Order
from aang_plugin_compare.on_node import Site, Status

try:
    import ray
    from ray import exceptions
    from ray.job_config import JobConfig
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as missing:
    raise ConfigError(
        "--engine ray: needs Ray; pip install 'aang-plugin-compare[ray]'"
    ) from missing

RETRIES = 3
"""How often a lost run is tried again."""
MOST_AT_ONCE = 512
"""The largest number of runs that wait for a node at the same time; each has a thread here."""

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_CHECK_SECONDS = 120.0
_CANCEL_SECONDS = 5.0

_LOST: Mapping[object, str] = {
    exceptions.NodeDiedError: "the node died",
    exceptions.WorkerCrashedError: "its process died",
    exceptions.OutOfMemoryError: "the node ran out of memory",
    -signal.SIGKILL: "it was killed, as systems do when memory runs out",
    128 + signal.SIGTERM: "it was stopped by SIGTERM",
}
"""What Ray reports about lost runs, and exit statuses of those ended from outside."""


class _LostError(Exception):
    """A run was lost, and may be tried again."""


@contextmanager
def ray_cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine, and disconnect at the end.

    Args:
        address: ``HOST:PORT`` of the cluster, or ``auto`` for the one that this machine is part of;
            None starts one.

    Raises:
        AangError: there is no such cluster, or it cannot be used.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is not None:
        _see_that_it_answers(address)
    # For each lost node, Ray's threads print dozens of lines to standard output. They are in Ray's
    # logs, too, and this module prints the one that matters.
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        _connect(address)
        try:
            yield
        finally:
            ray.shutdown()


class _NoFolderOfOurs(JobConfig):
    """Keeps the current folder off the import path of Ray's workers, where Ray puts it first.

    Ray leaves it out of jobs that upload a working directory. There is no public option for it;
    ``test_ray.py`` notices if this override loses its effect.
    """

    def _runtime_env_has_working_dir(self) -> bool:
        return True


def _connect(address: str | None) -> None:
    # Ray installs a handler for SIGTERM; the command needs its own.
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address or "local",
            job_config=_NoFolderOfOurs(),
            include_dashboard=None if address else False,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    # Ray raises a bare Exception, among others, if the machine is too busy to start a node in time.
    except Exception as error:
        where = "--engine ray" if address is None else f"--address {address}"
        said = " ".join(str(error).split()) or type(error).__name__
        raise AangError(f"{where}: {said}") from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _see_that_it_answers(address: str) -> None:
    """Check the address in seconds; ``ray.init`` would take minutes to fail."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        if "/" in host or not host or not port.isdecimal():
            raise ConfigError(
                f"--address {address}: is not an address; give HOST:PORT of a cluster that this "
                "machine is a node of, or auto"
            )
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise AangError(
                f"--address {address}: cannot be reached: {error}. Is it the address that ray "
                "start --head has shown?"
            ) from error
    command = ["-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        done = subprocess.run(
            [sys.executable, "-P", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise AangError(f"--address {address}: something is there, but no Ray answers") from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no Ray answers"]
        raise AangError(f"--address {address}: {lines[-1]}")


class RayLauncher(Launcher):
    """Trains runs on any node that has room for them.

    Args:
        root: the folder of the comparison, on a file system that all nodes share.
        tell: called with a line for each run that is lost.
        needs: the numbers of ``CPU`` and ``GPU`` of each run; runs share a GPU if it needs less
            than one.
        jobs: maximum number of runs at the same time; None for as many as the cluster has room for.
    """

    def __init__(
        self,
        root: Path,
        tell: Callable[[str], None],
        needs: Mapping[str, float],
        jobs: int | None = None,
    ) -> None:
        super().__init__(jobs or MOST_AT_ONCE)
        self._tell = tell
        self._needs = needs
        self._site = Site.here(root)
        remote = ray.remote(max_retries=0, num_cpus=needs["CPU"], num_gpus=needs["GPU"])
        self._task = remote(_train)
        self._ended: set[Path] = set()

    def ready(self) -> None:
        nodes = _nodes()
        fitting = [n for n in nodes if all(_has(n, r) >= self._needs[r] for r in self._needs)]
        if not fitting:
            most = {name: max(_has(node, name) for node in nodes) for name in self._needs}
            raise ConfigError(
                f"--cpus-per-run {self._needs['CPU']:g} --gpus-per-run {self._needs['GPU']:g}: no "
                f"node of this cluster ({len(nodes)}) has that many; the most that one has is "
                f"{most['CPU']:g} CPUs and {most['GPU']:g} GPUs"
            )
        look = ray.remote(max_retries=0, num_cpus=0)(on_node.complaint)
        asked = {}
        for node in fitting:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[look.options(scheduling_strategy=there).remote(self._site)] = _name(node)
        for answer, name in asked.items():
            try:
                why = ray.get(answer, timeout=_CHECK_SECONDS)
            except exceptions.GetTimeoutError:
                why = f"does not answer within {_CHECK_SECONDS:g} seconds"
            except exceptions.RayError as error:
                why = f"cannot run aang: {_last_line(error)}"
            if why:
                raise ConfigError(f"node {name} {why}")

    def train(self, order: Order) -> str | None:
        lost, attempt = 0, attempts_so_far(order.log)
        while True:
            attempt += 1
            try:
                return self._tried(order, attempt)
            except _LostError as error:
                if self._stops or order.folder in self._ended:
                    return str(error)
                claim, where = read_claim(claim_file(order.log)), "before it began"
                if claim is not None and claim.attempt == attempt:
                    where = f"on node {claim.node}"
                why = f"{where}: {error}"
            lost += 1
            if lost > RETRIES:
                return f"lost {lost} times, the last time {why} ({order.log})"
            self._tell(
                f"{order.name}: lost {why}; tried again from its last checkpoint "
                f"({lost} of {RETRIES})"
            )

    def _tried(self, order: Order, attempt: int) -> str | None:
        """Make an attempt at a run, and return why it failed.

        Raises:
            _LostError: it was lost.
        """

        def end(force: bool) -> None:
            # Ray cancels a task that has not begun. To one that trains, a busy node may deliver
            # that late or never, so it also looks for a mark in the folder.
            self._ended.add(order.folder)
            with suppress(AangError):  # a full disk: then only Ray asks it
                ask_to_end(order.log, attempt)
            ray.cancel(task, force=force)

        with self._lock:
            if self._stops:
                return "stopped"
            self._ended.discard(order.folder)
            task = self._task.options(name=order.name).remote(
                order, self._site, attempt, self._environment()
            )
            self._running[order.folder] = end
        try:
            while not ray.wait([task], timeout=_CANCEL_SECONDS)[0]:
                with self._lock:
                    # A busy node may lose a cancellation.
                    if order.folder in self._ended:
                        ray.cancel(task, force=self._stops > 1)
            status: Status = ray.get(task)
        except exceptions.TaskCancelledError:
            return "stopped"
        except exceptions.RayError as error:
            if type(error) in _LOST:
                raise _LostError(_LOST[type(error)]) from error
            return _last_line(error)
        finally:
            with self._lock:
                del self._running[order.folder]
        if status.number in _LOST:
            raise _LostError(_LOST[status.number])
        if status.number is None:
            return f"node {status.node} {status.complaint}"
        return None if status.number == 0 else order.failure(status.number, f"node {status.node}")

    def _environment(self) -> Mapping[str, str]:
        """Environment variables of the run's process, in addition to the node's."""
        environment = {name: v for name, v in os.environ.items() if name.startswith("AANG_")}
        environment["OMP_NUM_THREADS"] = f"{self._needs['CPU']:g}"
        # A thread that waits at a barrier must not keep a core from the process that it waits for.
        environment["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "passive")
        if not self._needs["GPU"]:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        return environment


def _train(order: Order, site: Site, attempt: int, environment: Mapping[str, str]) -> Status:
    """Train a run; runs on a node."""
    here = ray.get_runtime_context().get_node_id()
    name = next((_name(node) for node in _nodes() if node["NodeID"] == here), here)
    return on_node.train(order, site, attempt, name, environment)


def _nodes() -> Sequence[Mapping[str, Any]]:
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _has(node: Mapping[str, Any], resource: str) -> float:
    return float(node["Resources"].get(resource, 0))


def _name(node: Mapping[str, Any]) -> str:
    name, address = node["NodeName"], node["NodeManagerAddress"]
    return address if name == address else f"{name} ({address})"


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
