"""Which process holds a lock, and whether it can be known to have ended."""

import os
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock.

    A number identifies a process only among those of its PID namespace, such as a container, and
    containers may have the same host name. So the kernel and the namespace are part of this.

    Attributes:
        pid: its number.
        host: the name of the host that it runs on, for people.
        started: when it started, in the system's own format, to distinguish it from a later process
            with the same number; empty if unknown.
        kernel: identifies the running kernel, until the next boot; empty if unknown.
        namespace: identifies the PID namespace under that kernel; empty if unknown.
        machine: identifies the installed system, across boots; empty if unknown.
    """

    pid: int
    host: str
    started: str
    kernel: str = ""
    namespace: str = ""
    machine: str = ""

    @classmethod
    def this(cls) -> "Holder":
        """The current process."""
        pid, (kernel, namespace, machine) = os.getpid(), _surroundings()
        started = process_start(pid) or ""
        return cls(pid, socket.gethostname(), started, kernel, namespace, machine)

    @classmethod
    def of(cls, value: Any) -> "Holder":
        """The process that ``value``, read from JSON, describes.

        Raises:
            ValueError: it describes none.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(value, dict) or not set(value) <= set(names) or "pid" not in value:
            raise ValueError("not a holder")
        pid, texts = value["pid"], [value.get(name, "") for name in names[1:]]
        if type(pid) is not int or not 0 < pid < 2**32 or {type(text) for text in texts} != {str}:
            raise ValueError("not a holder")
        return cls(pid, *texts)

    @property
    def is_here(self) -> bool:
        """Whether its number can be looked up here: it has, or had, this kernel and namespace."""
        kernel, namespace, _ = _surroundings()
        if self.kernel and kernel:
            return (self.kernel, self.namespace) == (kernel, namespace)
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it ran here and has ended."""
        if not self.is_here:
            return False
        now = process_start(self.pid)
        return now is None or bool(self.started and now and now != self.started)

    @property
    def had_this_kernel(self) -> bool:
        """Whether it runs, or ran, under the kernel of this process, in whatever namespace."""
        kernel, _, _ = _surroundings()
        return bool(kernel) and self.kernel == kernel

    @property
    def was_before_boot(self) -> bool:
        """Whether it ran on this machine before the machine started again."""
        kernel, _, machine = _surroundings()
        same = bool(machine) and self.machine == machine and self.host == socket.gethostname()
        return same and bool(self.kernel) and self.kernel != kernel


@cache
def _surroundings() -> tuple[str, str, str]:
    """Kernel, PID namespace and machine of this process; what cannot be known is empty."""
    kernel = _content(Path("/proc/sys/kernel/random/boot_id"))
    namespace = ""
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    machine = _content(Path("/etc/machine-id"))
    # In images of containers the file often holds this word instead of a number.
    return kernel, namespace, "" if machine == "uninitialized" else machine


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def process_start(pid: int) -> str | None:
    """When a process of this host started; None if there is no such process, empty if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return _start_without_proc(pid)
    # The second field is a name in parentheses, which may itself hold spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot} {fields[18]}"


def _start_without_proc(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    with suppress(OSError):
        asked = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return ""
