"""``python -m aang_plugin_compare.leashed``: a training that ends with the process that started it.

It ends at once if its standard input is closed, which happens when that process dies, or if a
later attempt at the same run has started elsewhere. It takes a checkpoint and ends if a mark beside
its log asks for that.
"""

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang_core import AangError
from aang_core.cli import echo, main
from aang_plugin_compare.claim import (
    LOOK_SECONDS,
    await_end_of_others,
    claim_file,
    is_asked_to_end,
    is_overtaken,
    lay_claim,
)
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.same_precision import arguments_with_precision


def command(order: Order, attempt: int, node: str) -> list[str]:
    """The command that starts such a training.

    It imports nothing from the current folder, whose files may be a stranger's.

    Args:
        order: the run.
        attempt: number of the attempt, from 1.
        node: name of the machine, for messages.
    """
    what: dict[str, Any] = {
        "name": order.name,
        "folder": str(order.folder),
        "options": str(order.options),
        "log": str(order.log),
        "before": order.before,
        "after": order.after,
    }
    asked = json.dumps({"order": what, "attempt": attempt, "node": node})
    return [sys.executable, "-P", "-m", "aang_plugin_compare.leashed", asked]


def train(order: Order, attempt: int, node: str) -> None:
    """Start or resume the run, and exit as ``aang train`` does."""
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
    """End this process once it must no longer train, or ask it to end once that is asked for.

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


def _order(value: Mapping[str, Any]) -> Order:
    folder, options, log = (Path(value[name]) for name in ("folder", "options", "log"))
    return Order(value["name"], folder, options, log, value["before"], value["after"])


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    train(_order(asked["order"]), asked["attempt"], asked["node"])
