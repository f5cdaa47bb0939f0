"""How many cores this process may keep busy. Imports no torch."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """How many cores this process may keep busy, at least one.

    A process may be bound to some of the machine's cores, and a container may have a quota, such as
    the CPU time of 1.5 cores of 64. More threads than that wait for each other.

    Args:
        root: where Linux shows control groups, in ``proc`` and ``sys``.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # not Linux
        cores = os.cpu_count() or 1
    return max(1, int(min([cores, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of this process's control group and of those around it, in cores."""
    with suppress(OSError):  # not Linux
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            mounted = root / "sys/fs/cgroup"
            if controllers:  # version 1
                if "cpu" not in controllers.split(","):
                    continue
                mounted /= "cpu"
            # In a container the path may be that outside of it, and the group itself is mounted.
            own = mounted / path.strip("/")
            for group in (own, *own.parents):
                yield from _quota(group)


def _quota(group: Path) -> Iterator[float]:
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with suppress(OSError):  # without that controller, or of the other version
            words = " ".join((group / name).read_text(encoding="ascii") for name in names).split()
            if words[0].isdecimal():  # else "max" or -1: there is no limit
                yield int(words[0]) / int(words[1])
