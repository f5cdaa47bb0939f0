"""From the host to a device, without a pause."""

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """``tensor`` on ``device``, without waiting until it is there.

    A copy to CUDA waits for all work on the device unless it comes from pinned memory.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        # torch pins no tensor whose elements share memory, such as an expanded one.
        tensor = tensor.contiguous().pin_memory()
    return tensor.to(device, non_blocking=True)
