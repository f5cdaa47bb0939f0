"""Which attempt at a run counts, where several machines may each believe that theirs does.

A machine that a cluster has given up may still be running, and writing. So each attempt at a run
has a number, kept in a file next to the run's log. An attempt that finds a higher number there ends
itself; the one that wrote it waits until that must have happened, and then takes over what the
other has left: the lock of a machine that cannot be seen from here.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from aang_core import LockedError
from aang_core.storage import Holder, holder_of, take_from, writing

LOOK_SECONDS = 1.0
"""How often an attempt looks whether it still counts."""
GRACE_SECONDS = 15.0
"""After how long one that does not is taken to have ended itself."""


@dataclass(frozen=True)
class Claim:
    """The attempt that counts.

    attempt: its number, from 1. node: where it is. holders: its process and those before it.
    """

    attempt: int
    node: str
    holders: Sequence[Holder]


def claim_file(log: Path) -> Path:
    """Where the claim on a run is, next to its log."""
    return log.with_suffix(".claim.json")


def read_claim(path: Path) -> Claim | None:
    """The claim in ``path``; None if there is none, or it is just being written."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        holders = [Holder(**holder) for holder in value["holders"]]
        return Claim(int(value["attempt"]), str(value["node"]), holders)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def lay_claim(path: Path, attempt: int, node: str) -> Claim:
    """Let ``attempt``, which is this process, be the one that counts.

    Raises:
        LockedError: a later one does.
        StorageError: it cannot be written.
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
        # Written in place and not renamed: on NFS, whoever opens a file is told of new content, but
        # may for a minute be given the old file of a name.
        path.write_text(json.dumps(asdict(claim)), encoding="utf-8")
    return claim


def is_overtaken(path: Path, attempt: int) -> bool:
    """Whether a later attempt counts by now."""
    claim = read_claim(path)
    return claim is not None and claim.attempt > attempt


def await_end_of_others(folder: Path, claim: Claim, grace: float = GRACE_SECONDS) -> None:
    """Wait until the attempts before this one have ended, and let none of them hold ``folder``.

    Those on this machine can be seen. Others have noticed after some looks that they count no more;
    the lock that one of them still has after ``grace`` seconds is that of a machine that is gone,
    and is removed. A lock that belongs to none of them is let alone.
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
