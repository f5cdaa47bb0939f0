"""What a node of a cluster does for a comparison: check that it can train, and train a run."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from aang_core import AangError
from aang_core.storage import Holder, holder_of
from aang_plugin_compare.claim import ask_to_end
from aang_plugin_compare.launcher import Order

_SEEN_SECONDS = 5.0
"""How long a shared file system may take to show a new file on another machine."""


@dataclass(frozen=True)
class Site:
    """Where a comparison is, as seen by the process that runs it.

    Attributes:
        root: the folder of the comparison.
        directory: the directory that paths are relative to.
        holder: that process, which holds the lock of ``root``.
        version: its version of aang-core.
    """

    root: Path
    directory: Path
    holder: Holder
    version: str

    @classmethod
    def here(cls, root: Path) -> "Site":
        """The site of this process."""
        return cls(root, Path.cwd(), Holder.this(), version("aang-core"))


@dataclass(frozen=True)
class Status:
    """How a training ended on a node.

    Attributes:
        node: name of the node.
        number: the exit status; None if the training did not start.
        complaint: why it did not start; empty if it did.
    """

    node: str
    number: int | None
    complaint: str = ""


def complaint(site: Site) -> str:
    """Why runs of a comparison cannot be trained on this node; empty if they can.

    If this node sees the lock of the comparison's process, it sees the same folder.
    """
    here = version("aang-core")
    if here != site.version:
        return f"has aang-core {here} and not {site.version}; install the same version"
    end = time.monotonic() + _SEEN_SECONDS
    while holder_of(site.directory / site.root) != site.holder:
        if time.monotonic() >= end:
            return (
                f"does not see {site.directory / site.root}; put the comparison, with --out, on a "
                "file system that all nodes share, under the same path"
            )
        time.sleep(0.1)
    if not site.directory.is_dir():
        return f"does not see {site.directory}, which relative paths start from"
    return ""


def train(
    order: Order, site: Site, attempt: int, node: str, environment: Mapping[str, str]
) -> Status:
    """Train a run in a separate process, which ends with this one.

    SIGINT makes it save a checkpoint and end; repeating it changes nothing.

    Args:
        order: the run.
        site: where the comparison is.
        attempt: number of the attempt, from 1.
        node: name of this node, for messages.
        environment: environment variables to set in addition to this process's.
    """
    if why := complaint(site):
        return Status(node, None, why)
    log = site.directory / order.log
    with _marking_interrupts(log, attempt):
        process = replace(order, log=log).start(
            attempt, node, {**os.environ, **environment}, site.directory
        )
        while True:
            # With a timeout, because Python handles signals only between two instructions.
            with suppress(subprocess.TimeoutExpired):
                return Status(node, process.wait(timeout=0.5))


@contextmanager
def _marking_interrupts(log: Path, attempt: int) -> Iterator[None]:
    """Ask the training to end at every SIGINT, instead of raising KeyboardInterrupt.

    That could end this process, and the training with it, while it still saves its checkpoint. The
    training looks for the mark, whoever writes it; a signal from here too would be the second one,
    after which it ends without a checkpoint.
    """

    def mark(number: int, frame: FrameType | None) -> None:
        with suppress(AangError):  # a full disk: the next interrupt tries again
            ask_to_end(log, attempt)

    before = signal.signal(signal.SIGINT, mark)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
