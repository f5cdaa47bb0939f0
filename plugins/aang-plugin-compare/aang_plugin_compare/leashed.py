"""``python -m aang_plugin_compare.leashed``: a training that ends with the process that started it.

It ends at once if its standard input is closed, which happens when that process dies, or if a
later attempt at the same run has started elsewhere. It takes a checkpoint and ends if a mark beside
its log asks for that.
"""

import json
import os
import secrets
import select
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from aang_core import AangError
from aang_core.cli import echo, main
from aang_core.storage import writing
from aang_plugin_compare.claim import (
    LOOK_SECONDS,
    await_end_of_others,
    claim_file,
    is_asked_to_end,
    is_overtaken,
    lay_claim,
)
from aang_plugin_compare.launcher import Order


def train(order: Order, attempt: int, node: str) -> None:
    """Start or resume the run, and exit as ``aang train`` does.

    Args:
        order: the run.
        attempt: number of the attempt, from 1.
        node: name of this machine, for messages.
    """
    threading.Thread(target=_end_with, args=(order.log, attempt), daemon=True).start()
    try:
        claim = lay_claim(claim_file(order.log), attempt, node)
        await_end_of_others(order.folder, claim)
        if (order.folder / "result.json").is_file():
            return
        arguments = arguments_with_precision(order)
    except AangError as error:
        echo(f"Error: {error}", err=True)
        raise SystemExit(2) from None
    main(arguments)


def _end_with(log: Path, attempt: int) -> None:
    """Kill this process once it must no longer train, and end it gently if a mark asks for it.

    SIGKILL prevents any further write, because another process may already write to the folder.
    SIGTERM, which lets it take a checkpoint, is sent once: a second one would end it without.
    """
    asked = False
    while not is_overtaken(claim_file(log), attempt):
        if not asked and is_asked_to_end(log, attempt):
            asked = True
            os.kill(os.getpid(), signal.SIGTERM)
        readable, _, _ = select.select([sys.stdin], [], [], LOOK_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 1):
            break
    os.kill(os.getpid(), signal.SIGKILL)


def arguments_with_precision(order: Order) -> Sequence[str]:
    """The arguments of ``aang`` that start or resume the run, in the precision of the others.

    What ``--precision auto`` resolves to depends on the machine. The first run with an encoder of
    some width records it in the folder ``precision``, and the others take it from there, whichever
    machine trains them. A resumed run keeps its own.

    Raises:
        AangError: the run cannot start, or the record cannot be written.
    """
    # Imported here, so that the claim is laid before torch is loaded, which takes seconds.
    from aang.config import recorded_config
    from aang.runs import settled_precision

    config = recorded_config(order.options)
    if order.has_begun or config.precision != "auto":
        return order.arguments
    trusted = "--trust-remote-code" in order.after
    width, precision = settled_precision(config.model_copy(update={"trust_remote_code": trusted}))
    record = order.root / "precision" / str(width)
    with writing(record):
        # Of several processes, only one can give its folder that name, on every file system.
        draft = record.with_name(f".{width}.{secrets.token_hex(4)}")
        (draft / precision).mkdir(parents=True)
        try:
            draft.rename(record)
        except OSError:
            (draft / precision).rmdir()
            draft.rmdir()
        (recorded,) = record.iterdir()
    return [*order.arguments, "--precision", recorded.name]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    paths = {name: Path(asked["order"][name]) for name in ("folder", "options", "log")}
    train(Order(**{**asked["order"], **paths}), asked["attempt"], asked["node"])
