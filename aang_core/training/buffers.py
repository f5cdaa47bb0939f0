"""Buffers that training changes besides parameters: running statistics, queues, counters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

Place = tuple[nn.Module, str]
"""The module that owns a buffer, and the buffer's name in it."""


def buffers_of(modules: Iterable[nn.Module]) -> Iterator[tuple[Place, Tensor]]:
    """Every buffer of the modules, once if they share modules."""
    for owner in dict.fromkeys(part for module in modules for part in module.modules()):
        for name, buffer in owner.named_buffers(recurse=False):
            yield (owner, name), buffer


def saved_places(modules: Iterable[nn.Module]) -> list[Place]:
    """The places of all buffers of the modules that are part of their ``state_dict``.

    Whatever changes during training is: a checkpoint could not restore it otherwise. The others,
    such as the position ids and attention masks of transformers' encoders, are constant.
    """
    return [
        (owner, name)
        for (owner, name), _ in buffers_of(modules)
        if name not in owner._non_persistent_buffers_set
    ]


class KeptBuffers:
    """A copy of buffers, to restore or to compare with.

    Buffers are known by their place, because a module may replace a buffer instead of writing to
    it.

    Args:
        places: of the buffers.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        buffers = ((place, getattr(*place)) for place in places)
        self._kept = {
            place: (buffer, buffer.detach().clone())
            for place, buffer in buffers
            if buffer is not None
        }

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the value of every buffer."""
        for (owner, name), (buffer, value) in self._kept.items():
            buffer.copy_(value)
            setattr(owner, name, buffer)

    def compared(self) -> dict[Place, tuple[Tensor, Tensor]]:
        """The value of each buffer now and in the copy; whole numbers as float64.

        A buffer whose shape has changed is left out: there is no difference.
        """
        found = {}
        for place, (_, value) in self._kept.items():
            now = getattr(*place)
            if now is not None and now.shape == value.shape:
                found[place] = _as_numbers(now.detach()), _as_numbers(value)
        return found


def moved_buffers(
    changes: Sequence[Mapping[Place, Tensor]], coefficients: Sequence[float]
) -> dict[Place, Tensor]:
    """The values of buffers after several updates: b + Σ a_t δ_t / max(1, Σ a_t).

    Here a_t = max(α_t, 0). Parameters move by Σ α_t δ_t. That would leave the range of values
    that training has seen, and a running variance may become negative. A mean of the old value and
    those after each update stays in this range. With a single update and α = 1 it is the value
    after this update.

    Args:
        changes: δ_t of each update.
        coefficients: α_t.
    """
    shares = [max(coefficient, 0.0) for coefficient in coefficients]
    total = max(sum(shares), 1.0)
    moved: dict[Place, Tensor] = {}
    for place in dict.fromkeys(place for change in changes for place in change):
        buffer = getattr(*place).detach()
        value = _as_numbers(buffer)
        for change, share in zip(changes, shares, strict=True):
            if place in change:
                value = value + share / total * change[place].to(value.device)
        whole = value.dtype != buffer.dtype
        moved[place] = (value.round() if whole else value).to(buffer.dtype)
    return moved


def _as_numbers(buffer: Tensor) -> Tensor:
    """The buffer with a dtype that differences and means have a meaning in."""
    return buffer if buffer.is_floating_point() or buffer.is_complex() else buffer.double()
