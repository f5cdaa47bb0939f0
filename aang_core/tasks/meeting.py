"""What the processes of a training tell each other before they join."""

import os
from typing import TYPE_CHECKING

from torch import distributed

from aang_core.errors import AangError, ConfigError
from aang_core.tasks.launched import launched_processes

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

_REFUSED = "refused: "
"""Begins what a process says that cannot take part; no kind of device is called so."""


def meet(kind: str) -> "Store | None":
    """Wait until every process has said what kind of device it computes on.

    Processes on different kinds would wait for each other's messages for hours, and so would all
    others if one never came.

    Args:
        kind: of this process's device, such as ``cpu``.

    Returns:
        The store in which they met; None if they have met before, or a launcher other than torch's
        leaves the meeting to accelerate.

    Raises:
        ConfigError: the kinds differ, or a process cannot take part.
        RuntimeError: the processes cannot find each other.
    """
    store, said = _said_by_all(kind)
    refused = next((rank for rank, what in enumerate(said) if what.startswith(_REFUSED)), None)
    if refused is not None:
        raise ConfigError(
            f"process {refused} of {len(said)} cannot take part: "
            f"{said[refused].removeprefix(_REFUSED)}"
        )
    if len(set(said)) > 1:
        on = ", ".join(f"{rank} on {what}" for rank, what in enumerate(said))
        raise ConfigError(
            f"--device: the processes of this training compute on different kinds of devices "
            f"({on}); give --device cpu, or start them only where there is {max(said)}"
        )
    return store


def tell_others(reason: AangError) -> None:
    """Tell the other processes, if there are any, that this one cannot take part.

    Args:
        reason: what is raised here.
    """
    if launched_processes() > 1:
        try:
            _said_by_all(f"{_REFUSED}{reason}")
        except (RuntimeError, ValueError) as error:
            reason.add_note(f"The other processes could not be told: {error}")


def _said_by_all(own: str) -> "tuple[Store | None, list[str]]":
    """What every process says, by rank, and where; this one alone if that cannot be asked."""
    known = all(os.environ.get(name) for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"))
    if distributed.is_initialized() or not known:
        return None, [own]
    # Builds of torch without torch.distributed do not have it.
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://"))
    store.set(f"aang/said/{rank}", own)
    said = [store.get(f"aang/said/{other}").decode() for other in range(size)]
    # Process 0 may serve the store and leaves last. To the others' last message there is no answer,
    # which they could miss.
    if rank != 0:
        store.set(f"aang/has-read/{rank}", "")
    elif size > 1:
        store.wait([f"aang/has-read/{other}" for other in range(1, size)])
    return store, said
