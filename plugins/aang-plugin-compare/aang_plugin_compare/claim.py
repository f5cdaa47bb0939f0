"""Which attempt at a run counts if several machines may be training it.

A machine that a cluster has given up may still be running and writing. So each attempt at a run has
a number, kept in a file next to the run's log. An attempt that finds a higher number there ends
itself. The attempt with the higher number waits for that, and then takes over the lock that the
other machine left, because the processes of another machine cannot be seen.

Another file beside the log asks an attempt to end, since a message to another machine may be lost.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from aang_core import LockedError
from aang_core.storage import Holder, holder_of, take_from, writing

LOOK_SECONDS = 1.0
"""How often an attempt checks that it still counts."""
GRACE_SECONDS = 15.0
"""How long an attempt that no longer counts may take to end itself."""


@dataclass(frozen=True)
class Claim:
    """The attempt that counts.

    Attributes:
        attempt: its number, from 1.
        node: the machine that it runs on.
        holders: the processes of all attempts; its own is the last.
    """

    attempt: int
    node: str
    holders: Sequence[Holder]


def claim_file(log: Path) -> Path:
    """Where the claim on a run is, next to its log."""
    return log.with_suffix(".claim.json")


def read_claim(path: Path) -> Claim | None:
    """The claim in ``path``; None if there is none, or if it is being written right now."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        holders = [Holder.of(holder) for holder in value["holders"]]
        return Claim(int(value["attempt"]), str(value["node"]), holders)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def lay_claim(path: Path, attempt: int, node: str) -> Claim:
    """Declare that this process, attempt number ``attempt``, is the one that counts.

    Args:
        path: the file of the claim.
        attempt: number of the attempt, from 1.
        node: name of this machine, for messages.

    Raises:
        LockedError: a later attempt counts already.
        StorageError: the claim cannot be written.
    """
    before = read_claim(path)
    if before is not None and before.attempt >= attempt:
        raise LockedError(
            f"{path}: attempt {attempt} is outdated; attempt {before.attempt} is running on "
            f"{before.node}"
        )
    holders = [*(before.holders if before is not None else ()), Holder.this()]
    claim = Claim(attempt, node, holders)
    with writing(path):
        # Written in place and not renamed: on NFS, readers see new content of a file at once, but
        # after a rename they may still open the old file for a minute.
        path.write_text(json.dumps(asdict(claim)), encoding="utf-8")
    return claim


def is_overtaken(path: Path, attempt: int) -> bool:
    """Whether a later attempt has taken over."""
    claim = read_claim(path)
    return claim is not None and claim.attempt > attempt


def await_end_of_others(folder: Path, claim: Claim, grace: float = GRACE_SECONDS) -> None:
    """Wait until earlier attempts have ended, and remove their lock on ``folder``.

    Attempts on this machine can be watched. Those on other machines notice by themselves that they
    no longer count. If one of them still holds the lock after ``grace`` seconds, its machine is
    gone and the lock is removed. Locks of other processes are left alone.

    Args:
        folder: the run folder.
        claim: the claim of this attempt.
        grace: maximum seconds to wait.
    """
    others = claim.holders[:-1]
    unseen = [holder for holder in others if not holder.is_here]
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < grace:
        lives_here = any(holder.is_here and not holder.is_gone for holder in others)
        unclear = bool(unseen) and passed < min(grace, 3 * LOOK_SECONDS)
        if not lives_here and not unclear and holder_of(folder) not in unseen:
            return
        time.sleep(0.05)
    left = holder_of(folder)
    if left is not None and left in unseen:
        take_from(folder, left)


def ask_to_end(log: Path, attempt: int) -> None:
    """Ask an attempt to take a checkpoint and end, wherever it is: it looks for this mark.

    Args:
        log: the run's log.
        attempt: number of the attempt.

    Raises:
        StorageError: the mark cannot be written.
    """
    path = _mark(log)
    with writing(path):
        path.write_text(str(attempt), encoding="utf-8")  # in place, as a claim is


def is_asked_to_end(log: Path, attempt: int) -> bool:
    """Whether :func:`ask_to_end` was called for an attempt."""
    return _asked(log) == attempt


def attempts_so_far(log: Path) -> int:
    """The number of the last attempt at a run, also of one that ended before it began."""
    claim = read_claim(claim_file(log))
    return max(_asked(log), 0 if claim is None else claim.attempt)


def _mark(log: Path) -> Path:
    return log.with_suffix(".end")


def _asked(log: Path) -> int:
    try:
        return int(_mark(log).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
