"""Which attempt at a run counts, when several machines may each believe that theirs does.

A machine that a cluster has given up may still be running and writing. So each attempt at a run has
a number, kept in a file next to the run's log. An attempt that finds a higher number there ends
itself. The attempt that wrote the higher number waits for that, and then takes over the lock that
the other machine has left, which cannot be seen from here.
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
        holders = [Holder(**holder) for holder in value["holders"]]
        return Claim(int(value["attempt"]), str(value["node"]), holders)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def lay_claim(path: Path, attempt: int, node: str) -> Claim:
    """Make ``attempt``, which is this process, the one that counts.

    Raises:
        LockedError: a later attempt counts already.
        StorageError: the claim cannot be written.
    """
    before = read_claim(path)
    if before is not None and before.attempt >= attempt:
        raise LockedError(
            f"{path}: attempt {attempt} comes too late, {before.attempt} is under way on "
            f"{before.node}"
        )
    holders = [*(before.holders if before is not None else ()), Holder.this()]
    claim = Claim(attempt, node, holders)
    with writing(path):
        # Written in place and not renamed: on NFS a reader sees new content of a file at once, but
        # may for a minute still open the old file under a name.
        path.write_text(json.dumps(asdict(claim)), encoding="utf-8")
    return claim


def is_overtaken(path: Path, attempt: int) -> bool:
    """Whether a later attempt has taken over."""
    claim = read_claim(path)
    return claim is not None and claim.attempt > attempt


def await_end_of_others(folder: Path, claim: Claim, grace: float = GRACE_SECONDS) -> None:
    """Wait until the attempts before this one have ended, and free ``folder`` of their locks.

    Attempts on this machine can be watched. Those on others find out by themselves that they no
    longer count; a lock that one of them still has after ``grace`` seconds belongs to a machine
    that is gone, and is removed. Nobody else's lock is touched.

    Args:
        folder: the run folder.
        claim: the claim of this attempt.
        grace: seconds to wait at most.
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
