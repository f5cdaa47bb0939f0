"""The state of body, heads and optimiser: every tensor under a name, buffers, what is frozen."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.training.optimization import Optimization

Place = tuple[nn.Module, str]
"""The module that owns a buffer, and the buffer's name in it."""


class FrozenPart:
    """The parameters of a body that are not trained.

    They can be loaded from where the body came from, so a checkpoint needs only a digest that tells
    whether they are still the same.

    Args:
        body: the module that all tasks share, with everything frozen that will be.
    """

    def __init__(self, body: nn.Module) -> None:
        frozen = {name: p for name, p in body.named_parameters() if not p.requires_grad}
        self._parameters = dict(sorted(frozen.items()))
        self._ids = {id(parameter) for parameter in frozen.values()}

    def holds(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` is one of them."""
        return id(tensor) in self._ids

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of their names and values; None if there are none."""
        if not self._parameters:
            return None
        digest = hashlib.sha256()
        for name, parameter in self._parameters.items():
            digest.update(f"{name} {parameter.dtype} {list(parameter.shape)}\n".encode())
            flat = parameter.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def check(self, digest: str | None) -> None:
        """Refuse the checkpoint of a training whose frozen parameters had other values.

        Args:
            digest: what `digest` was when it was saved.

        Raises:
            DataError: they had other values.
        """
        if digest == self.digest:
            return
        raise DataError(
            "the frozen weights of the encoder have changed since the training began. The "
            "checkpoint does not hold them, so it needs the same encoder: restore that, or start a "
            "new training"
        )


class ModelState:
    """Saves and restores the modules of a training and their optimiser's state.

    Args:
        modules: body and heads, by name. A tensor that several of them share is saved once, under
            its first name.
        optimization: the optimiser of their parameters, and its schedule.
        frozen: the parameters that are not saved, because they do not change.
    """

    def __init__(
        self, modules: Mapping[str, nn.Module], optimization: Optimization, frozen: FrozenPart
    ) -> None:
        self._modules = modules
        self._optimization = optimization
        self._frozen = frozen

    def state_dict(self) -> dict[str, Any]:
        """Parameters, buffers, moments and schedule; the tensors in use, not copies."""
        moments = self._optimization.optimizer.state
        named = {n: t for n, t in self._named_tensors() if not self._frozen.holds(t)}
        return {
            "frozen": self._frozen.digest,
            "module": {name: tensor.detach() for name, tensor in named.items()},
            # Parameters that have had no gradient have no moments.
            "optimizer": {n: dict(moments[t]) for n, t in named.items() if t in moments},
            "schedule": self._optimization.schedule.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, each tensor on its device.

        Args:
            state: what `state_dict` returned.

        Raises:
            DataError: the state belongs to other modules, or to other frozen parameters.
        """
        saved = state["module"]
        named = {n: t for n, t in self._named_tensors() if not self._frozen.holds(t)}
        differing = named.keys() ^ saved.keys()
        differing |= {n for n in named.keys() & saved.keys() if saved[n].shape != named[n].shape}
        if differing:
            raise DataError(f"belongs to another model or space; they differ in {min(differing)!r}")
        self._frozen.check(state["frozen"])
        self._optimization.load_schedule(state["schedule"])
        for name, tensor in named.items():
            tensor.copy_(saved[name])
        optimizer = self._optimization.optimizer
        optimizer.state.clear()
        for name, moments in state["optimizer"].items():
            # Fused AdamW keeps the step count, too, on its parameter's device.
            device = named[name].device
            optimizer.state[named[name]] = {
                key: moment.to(device, copy=True) for key, moment in moments.items()
            }

    def _named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for module_name, module in self._modules.items():
            for name, tensor in module.state_dict(keep_vars=True).items():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{module_name}|{name}", tensor


def buffers_of(modules: Iterable[nn.Module]) -> Iterator[Place]:
    """The place of every buffer of the modules, once if they share modules."""
    for owner in dict.fromkeys(part for module in modules for part in module.modules()):
        for name, _ in owner.named_buffers(recurse=False):
            yield owner, name


def saved_places(modules: Iterable[nn.Module]) -> list[Place]:
    """The places of all buffers of the modules that are part of their ``state_dict``.

    Whatever changes during training is: a checkpoint could not restore it otherwise. The others,
    such as the position ids and attention masks of transformers' encoders, are constant.
    """
    return [
        (owner, name)
        for owner, name in buffers_of(modules)
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
                found[place] = as_numbers(now.detach()), as_numbers(value)
        return found


def as_numbers(buffer: Tensor) -> Tensor:
    """The buffer in a dtype in which differences and means make sense."""
    return buffer if buffer.is_floating_point() or buffer.is_complex() else buffer.double()
