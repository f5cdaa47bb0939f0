"""What this plug-in does when several processes are to share a training."""

from typing import TYPE_CHECKING

from aang_core import AangError, hookimpl

if TYPE_CHECKING:
    import torch

    from aang_core import Processes


@hookimpl
def aang_join_processes(device: "torch.device | AangError") -> "Processes":
    """Meet the other processes."""
    from aang_plugin_distributed.processes import join

    return join(device)
