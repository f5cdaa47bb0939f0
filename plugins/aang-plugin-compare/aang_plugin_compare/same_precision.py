"""Every run of a comparison or search computes in the same precision, also on several machines."""

import secrets
from collections.abc import Sequence

from aang.config import recorded_config
from aang.runs import settled_precision

from aang_core.storage import writing
from aang_plugin_compare.launcher import Order


def arguments_with_precision(order: Order) -> Sequence[str]:
    """The arguments of ``aang`` that start or resume the run, in the precision of the others.

    What ``--precision auto`` comes to depends on the machine. The first run with an encoder of some
    width records it in the folder ``precision``, and the others take it from there, whichever
    machine trains them. A resumed run keeps its own.

    Raises:
        AangError: the run cannot start, or the record cannot be written.
    """
    config = recorded_config(order.options)
    if order.has_begun or config.precision != "auto":
        return order.arguments
    trusted = "--trust-remote-code" in order.after
    width, precision = settled_precision(config.model_copy(update={"trust_remote_code": trusted}))
    record = order.root / "precision" / str(width)
    with writing(record):
        # Of several processes, one alone can give its folder that name, on every file system.
        draft = record.with_name(f".{width}.{secrets.token_hex(4)}")
        (draft / precision).mkdir(parents=True)
        try:
            draft.rename(record)
        except OSError:
            (draft / precision).rmdir()
            draft.rmdir()
        (recorded,) = record.iterdir()
    return [*order.arguments, "--precision", recorded.name]
