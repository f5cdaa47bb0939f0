"""Runs as tasks of a Ray cluster: Ray finds a node for each and reports lost ones.

Ray's own retries are off, because Ray would not report that it retries, nor on which node.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from aang_core import AangError, ConfigError
from aang_plugin_compare import on_node
from aang_plugin_compare.claim import ask_to_end, attempts_so_far, claim_file, read_claim
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.on_node import Site, Status
from aang_plugin_compare.ray_head import HeadWatch

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
_NO_ROOM_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_LOOK_SECONDS = 10.0

_FROM_OUTSIDE: Mapping[int | None, str] = {
    -signal.SIGKILL: "it was killed, as systems do when memory runs out",
    128 + signal.SIGTERM: "it was stopped by SIGTERM",
}
"""Exit statuses of runs that were ended from outside."""


@contextmanager
def ray_cluster(address: str | None) -> Iterator[HeadWatch]:
    """Connect to a cluster, or start one on this machine, and disconnect at the end.

    Its head is watched as long as it is connected.

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
        head = HeadWatch(ray.get_runtime_context().gcs_address)
        head.start()
        try:
            yield head
        finally:
            head.stop()
            ray.shutdown()


class _NoFolderOfOurs(JobConfig):
    """Keeps the current folder off the import path of Ray's workers, where Ray puts it first.

    Ray leaves it out of jobs that upload a working directory. There is no public option for it;
    ``test_ray.py`` notices if this one loses its effect.
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
        said = " ".join(str(error).split()) or type(error).__name__
        raise AangError(f"{_place(address)}: {said}") from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _see_that_it_answers(address: str) -> None:
    """Check the address in seconds; ``ray.init`` would take minutes to fail."""
    if "://" in address:
        raise ConfigError(
            f"{_place(address)}: give HOST:PORT, and run aang compare on a node of the cluster"
        )
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"{_place(address)}: is not an address; give HOST:PORT, or auto")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise AangError(
                f"{_place(address)}: cannot be reached: {error}. Is it the address that ray start "
                "--head has shown?"
            ) from error
    command = ["-m", "ray.scripts.scripts", "health-check", "--address", address]
    probe = [sys.executable, "-P", *command]
    try:
        done = subprocess.run(
            probe, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise AangError(f"{_place(address)}: something is there, but no Ray answers") from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no Ray answers"]
        if "InvalidAuthToken" in lines[-1]:
            raise AangError(
                f"{_place(address)}: asks for a token; set RAY_AUTH_MODE=token, and "
                "RAY_AUTH_TOKEN_PATH to the file of the token if it is not ~/.ray/auth_token"
            )
        raise AangError(f"{_place(address)}: {lines[-1]}")


def _place(address: str | None) -> str:
    return "--engine ray" if address is None else f"--address {address}"


@dataclass(frozen=True)
class _Begun:
    """An attempt at a run that a node is to make.

    Attributes:
        log: the run's log.
        attempt: its number.
        task: the task of Ray.
    """

    log: Path
    attempt: int
    task: Any

    def end(self, *, force: bool = False) -> None:
        """Ask it to take a checkpoint and end, or end it at once.

        Ray tells a task that has not begun. A busy node may deliver that late, or never, to one
        that trains; that one looks for a mark in the folder.
        """
        self.mark()
        ray.cancel(self.task, force=force)

    def mark(self) -> None:
        """Leave the mark that a training looks for."""
        with suppress(AangError):  # a full disk: then Ray alone tells it
            ask_to_end(self.log, self.attempt)


class RayLauncher:
    """Trains runs on any node that has room for them.

    Args:
        root: the folder of the comparison, on a file system that all nodes share.
        tell: called with a line for each run that is lost.
        head: watches the head of the cluster.
        cpus: CPUs of each run.
        gpus: GPUs of each run; runs share a GPU if this is less than one.
        jobs: most runs at the same time; None for as many as the cluster has room for.
    """

    def __init__(
        self,
        root: Path,
        tell: Callable[[str], None],
        head: HeadWatch,
        *,
        cpus: int = 1,
        gpus: float = 0,
        jobs: int | None = None,
    ) -> None:
        self.at_once = jobs or MOST_AT_ONCE
        self._tell = tell
        self._needs: Mapping[str, float] = {"CPU": cpus, "GPU": gpus}
        self._site = Site.here(root)
        self._task = ray.remote(max_retries=0, num_cpus=cpus, num_gpus=gpus)(_train)
        self._lock = Lock()
        self._running: dict[Path, _Begun] = {}
        self._ended: set[Path] = set()
        self._stops = 0
        self._head = head
        head.before_the_end = self._ask_all_to_end
        self._looking = Lock()
        self._has_room = True
        self._looked = time.monotonic()

    def ready(self) -> None:
        nodes = _nodes()
        fitting = [node for node in nodes if self._fits(node)]
        if not fitting:
            most = {name: max(_has(node, name) for node in nodes) for name in self._needs}
            raise ConfigError(
                f"{self._asked()}: no node of this cluster ({len(nodes)}) has that many; the most "
                f"that one has is {most['CPU']:g} CPUs and {most['GPU']:g} GPUs"
            )
        look = ray.remote(max_retries=0, num_cpus=0)(on_node.complaint)
        asked = {
            look.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(self._site): _name(node)
            for node in fitting
        }
        for answer, node in asked.items():
            try:
                why = ray.get(answer, timeout=_CHECK_SECONDS)
            except exceptions.GetTimeoutError:
                why = f"does not answer within {_CHECK_SECONDS:g} seconds"
            except exceptions.RayError as error:
                why = f"cannot run aang: {_last_line(error)}"
            if why:
                raise ConfigError(f"node {node} {why}")

    def train(self, order: Order) -> str | None:
        lost = 0
        attempt = attempts_so_far(order.log)
        while True:
            attempt += 1
            ended = self._tried(order, attempt)
            if isinstance(ended, Status) or self._stops or order.folder in self._ended:
                return self._judged(order, ended)
            where = self._where(order, attempt)
            lost += 1
            if lost > RETRIES:
                return f"lost {lost} times, the last time {where}: {ended} ({order.log})"
            self._tell(
                f"{order.name}: lost {where}: {ended}; tried again from its last checkpoint "
                f"({lost} of {RETRIES})"
            )

    def end(self, order: Order) -> bool:
        with self._lock:
            begun = self._running.get(order.folder)
            if begun is not None:
                self._ended.add(order.folder)
                begun.end()
        return begun is not None

    def stop(self) -> None:
        with self._lock:
            self._stops += 1
            for begun in self._running.values():
                begun.end(force=self._stops > 1)

    def _ask_all_to_end(self) -> None:
        """Ask runs on nodes that live on to take a checkpoint, without Ray."""
        for begun in list(self._running.values()):
            begun.mark()

    def _tried(self, order: Order, attempt: int) -> Status | str:
        """How the run ended, or why it was lost."""
        with self._lock:
            if self._stops:
                return "stopped"
            self._ended.discard(order.folder)
            environment = self._environment()
            task = self._task.options(name=order.name).remote(
                order, self._site, attempt, environment
            )
            self._running[order.folder] = _Begun(order.log, attempt, task)
        try:
            if why := self._without_room(order, task):
                return Status("", None, why)
            status = self._status(order, task)
        except exceptions.TaskCancelledError:
            return "stopped"
        except exceptions.NodeDiedError:
            return "the node died"
        except exceptions.WorkerCrashedError:
            return "its process died"
        except exceptions.OutOfMemoryError:
            return "the node ran out of memory"
        except exceptions.RayError as error:
            return Status("", None, _last_line(error))
        finally:
            with self._lock:
                del self._running[order.folder]
        return _FROM_OUTSIDE.get(status.number, status)

    def _status(self, order: Order, task: "ray.ObjectRef[Status]") -> Status:
        """Wait for a task to end."""
        while not ray.wait([task], timeout=_CANCEL_SECONDS)[0]:
            self._cancel_again(order, task)
        status: Status = ray.get(task)
        return status

    def _cancel_again(self, order: Order, task: "ray.ObjectRef[Status]") -> None:
        """Cancel a task that continues after it was to end: a busy node may lose a cancellation."""
        with self._lock:
            if self._stops or order.folder in self._ended:
                ray.cancel(task, force=self._stops > 1)

    def _environment(self) -> Mapping[str, str]:
        """Environment variables of the run's process, in addition to the node's."""
        environment = {name: v for name, v in os.environ.items() if name.startswith("AANG_")}
        environment["OMP_NUM_THREADS"] = f"{self._needs['CPU']:g}"
        # A thread that waits at a barrier must not keep a core from the process that it waits for.
        environment["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "passive")
        if not self._needs["GPU"]:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        return environment

    def _without_room(self, order: Order, task: Any) -> str:
        """Wait for the task; returns why it cannot run if the last node with room is lost."""
        since = None
        while not ray.wait([task], timeout=_LOOK_SECONDS)[0]:
            self._cancel_again(order, task)
            if not self._head.answers or self._room_left():
                since = None
                continue
            since = since or time.monotonic()
            if time.monotonic() - since > _NO_ROOM_SECONDS:
                ray.cancel(task, force=True)
                return f"no node is left that has {self._asked()}"
        return ""

    def _room_left(self) -> bool:
        """Whether a node has what a run needs; hundreds of waiting runs ask Ray once."""
        with self._looking:
            if time.monotonic() - self._looked >= _LOOK_SECONDS:
                self._has_room = any(self._fits(node) for node in _nodes())
                self._looked = time.monotonic()
            return self._has_room

    def _where(self, order: Order, attempt: int) -> str:
        claim = read_claim(claim_file(order.log))
        if claim is None or claim.attempt != attempt:
            return "before it began"
        return f"on node {claim.node}"

    def _judged(self, order: Order, status: Status | str) -> str | None:
        if isinstance(status, str):
            return status
        if status.number is None:
            return f"node {status.node} {status.complaint}" if status.node else status.complaint
        return None if status.number == 0 else order.failure(status.number, f"node {status.node}")

    def _fits(self, node: Mapping[str, Any]) -> bool:
        return all(_has(node, name) >= needed for name, needed in self._needs.items())

    def _asked(self) -> str:
        return f"--cpus-per-run {self._needs['CPU']:g} --gpus-per-run {self._needs['GPU']:g}"


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
