"""The state of body, heads and optimiser, with every tensor under a name."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.tasks.saved import saved_part, saved_tensor, wrong
from aang_core.training.frozen_part import FrozenPart
from aang_core.training.optimization import Optimization


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
        saved = saved_part(state, "module")
        every = dict(self._named_tensors())
        named = {n: t for n, t in every.items() if not self._frozen.holds(t)}
        frozen = every.keys() - named.keys()
        differing = sorted((every.keys() ^ saved.keys()) - frozen)
        if differing:
            raise DataError(f"belongs to another model or space; they differ in {differing[0]!r}")
        self._frozen.check(state.get("frozen"), {every[n]: saved[n] for n in frozen & saved.keys()})
        values = {name: saved_tensor(saved, name, tensor) for name, tensor in named.items()}
        moments = saved_part(state, "optimizer")
        trained = {name: t for name, t in named.items() if isinstance(t, nn.Parameter)}
        for name in moments:
            if name not in trained:
                raise wrong(name, "the name of a trained parameter", name)
            self._check_moments(saved_part(moments, name), trained[name])
        self._optimization.load_schedule(saved_part(state, "schedule"))
        for name, tensor in named.items():
            tensor.copy_(values[name])
        optimizer = self._optimization.optimizer
        optimizer.state.clear()
        for name, of_parameter in moments.items():
            optimizer.state[trained[name]] = {
                key: _moved(moment, trained[name]) for key, moment in of_parameter.items()
            }

    def _check_moments(self, saved: Mapping[str, Any], parameter: Tensor) -> None:
        """Raise DataError unless they are moments that the optimiser has of the parameter."""
        own = self._optimization.moments
        if saved.keys() != own:
            raise wrong("optimizer", f"the moments {', '.join(sorted(own))}", list(saved))
        for key in own:
            saved_tensor(saved, key, torch.tensor(0.0) if key == "step" else parameter)

    def _named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for module_name, module in self._modules.items():
            for name, tensor in module.state_dict(keep_vars=True).items():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{module_name}|{name}", tensor


def _moved(moment: Any, parameter: Tensor) -> Any:
    """A copy of a moment on its parameter's device, where fused AdamW has the step count, too."""
    if not isinstance(moment, Tensor):
        return moment
    return moment.to(parameter.device, copy=True)
