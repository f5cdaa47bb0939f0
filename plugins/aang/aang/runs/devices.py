"""What a run computes on: the device, and the cores that this process may use."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from joblib import cpu_count

from aang_core.errors import ConfigError
from aang_core.tasks.processes import launched_processes, local_processes, local_rank

CPU = torch.device("cpu")


def choose_device(name: str) -> torch.device:
    """The device called ``name``, such as ``cpu``, ``cuda`` or ``cuda:1``.

    ``auto`` means the accelerator if there is one. If a machine has several, each of its processes
    uses a different one.

    Raises:
        ConfigError: there is no such device on this machine, or its processes cannot share it.
    """
    if name == "auto":
        kind = _accelerator()
        return CPU if kind is None else _own(kind, name)
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"--device {name}: is not the name of a device; {_there()}") from error
    if device.type == "cpu":
        return CPU
    if device.type == "meta":
        raise ConfigError(f"--device {name}: computes no numbers; {_there()}")
    if device.type == _accelerator():
        count = torch.accelerator.device_count()
        if device.index is not None and device.index >= count:
            raise ConfigError(f"--device {name}: does not exist; {_there()}")
        if launched_processes() > 1:
            device = _of_several(device, name)
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ConfigError(
            f"--device {name}: not available here: {_first_sentence(error)}; {_there()}"
        ) from error
    return device


@contextmanager
def on_usable_cores(recorded: int | None = None) -> Iterator[str | None]:
    """Compute with no more threads than cores that may be used, unless OMP_NUM_THREADS says more.

    torch knows which cores a process is bound to, but not that a container has a quota.

    Args:
        recorded: the number of threads that the run began with and must keep; None for a new run.

    Yields:
        A sentence if the number of threads differs from torch's or, for a resumed run, from that of
        a new run; else None.
    """
    before = threads = torch.get_num_threads()
    cores, told = cpu_count(), None
    if "OMP_NUM_THREADS" not in os.environ and cores < threads:
        told = (
            f"this process may use {cores} of the machine's cores, so it computes with {cores} "
            f"threads and not {threads}; OMP_NUM_THREADS gives another number"
        )
        threads = cores
    if recorded not in (None, threads):
        told = (
            f"the run began with {recorded} threads and continues with {recorded}, not {threads}: "
            "the last digits of its numbers depend on that"
        )
    torch.set_num_threads(recorded or threads)
    try:
        yield told
    finally:
        torch.set_num_threads(before)


def _of_several(device: torch.device, name: str) -> torch.device:
    if device.index is None:
        return _own(device.type, name)
    if local_processes() > 1:
        raise ConfigError(
            f"--device {name}: is one device, and each of the {local_processes()} processes on "
            f"this machine needs its own; give --device {device.type}"
        )
    return device


def _own(kind: str, name: str) -> torch.device:
    """The accelerator that this process has for itself."""
    count = torch.accelerator.device_count()
    if launched_processes() > 1 and local_rank() >= count:
        raise ConfigError(
            f"--device {name}: each process needs a device of its own, and this is process "
            f"{local_rank() + 1} on a machine with {count}; start at most {count} here, or give "
            "--device cpu"
        )
    return torch.device(kind, local_rank() % count)


def _accelerator() -> str | None:
    """The kind of accelerator that this machine has."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return None if found is None else str(found.type)


def _there() -> str:
    kind = _accelerator()
    count = 0 if kind is None else torch.accelerator.device_count()
    return f"this machine has {_listed(['cpu', *(f'{kind}:{i}' for i in range(count))])}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _first_sentence(error: Exception) -> str:
    """The first sentence of a message, after which torch lists every operation and kernel."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].partition(". ")[0].rstrip(".")
