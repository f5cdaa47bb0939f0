"""The option that names trackers, and the observer that passes scalars on to them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core import RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang_core import Observer


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register ``--log``."""
    register(
        "log",
        "tracker for scalars, such as tensorboard or wandb, through accelerate",
        tuple[str, ...],
        default=(),
        reporting=True,
    )


@hookimpl
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Refuse an unavailable tracker before hours of training, not after them."""
    if options["log"]:
        from aang_plugin_tracking.trackers import check_trackers

        check_trackers(options["log"])


@hookimpl
def aang_observe(folder: Path, options: Mapping[str, Any]) -> "Observer | None":
    """Pass scalars on to the trackers."""
    if not options["log"]:
        return None
    from aang_plugin_tracking.trackers import Tracker

    return Tracker(options["log"], folder, options)
