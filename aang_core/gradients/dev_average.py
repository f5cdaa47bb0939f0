"""A running mean of the dev gradient over steps."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.tasks.saved import saved_tensor, wrong
from aang_core.tasks.task import Batch, Task


class AveragedDevHead(DevHead):
    """A dev head whose dev gradients are averaged over the steps that measure.

    With v_t the dev gradient of the t-th step that measures, tasks are measured against

        v̄_t = Σ_s β^(t − s) v_s / Σ_s β^(t − s), s = 1, …, t,

    an exponential mean. Dev rows and the fit of φ* differ from step to step; the mean is less noisy
    than v_t and lags a little behind it. It needs one more buffer of the body's size.

    Args:
        inner: provides φ*.
        body: θ, the parameters that the mean covers.
        beta: β, from 0 (no memory) up to, but not including, 1.
    """

    def __init__(self, inner: DevHead, body: nn.Module, beta: float) -> None:
        self.inner = inner
        self.beta = beta
        self._names = {
            p: name for name, p in body.named_parameters(remove_duplicate=True) if p.requires_grad
        }
        self._sums: dict[str, Tensor] = {}
        self._weight = 0.0

    @property
    def ready(self) -> bool:
        return self.inner.ready

    @property
    def remembers(self) -> bool:
        return self.inner.remembers

    @property
    def draws(self) -> int:
        return self.inner.draws

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:
        self.inner.draw_from(source)

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        return self.inner.fit(end_task, features, batches)

    def observe(
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        self.inner.observe(features, batches, begins=begins)

    def smoothed(self, v: dict[nn.Parameter, Tensor]) -> dict[nn.Parameter, Tensor]:
        now = {self._names[parameter]: gradient for parameter, gradient in v.items()}
        # New tensors, because a repeated step restores the old ones.
        sums = {name: self.beta * total for name, total in self._sums.items()}
        for name, gradient in now.items():
            sums[name] = sums[name].add_(gradient) if name in sums else gradient.clone()
        self._sums, self._weight = sums, self.beta * self._weight + 1.0
        return {
            parameter: sums[name] / self._weight
            for parameter, name in self._names.items()
            if name in sums
        }

    def check(self, end_task: Task) -> None:
        self.inner.check(end_task)

    def state_dict(self) -> dict[str, Tensor]:
        return {
            **{f"head|{name}": tensor for name, tensor in self.inner.state_dict().items()},
            **{f"sum|{name}": total for name, total in self._sums.items()},
            "weight": torch.tensor(self._weight, dtype=torch.float64),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        def under(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): tensor
                for name, tensor in state.items()
                if name.startswith(prefix)
            }

        own = {name: parameter for parameter, name in self._names.items()}
        sums = under("sum|")
        for name in sums:
            if name not in own:
                raise wrong(f"sum|{name}", "the sum of a parameter's gradients", sums[name])
            saved_tensor(sums, name, own[name])
        weight = saved_tensor(state, "weight", torch.tensor(0.0, dtype=torch.float64))
        if not math.isfinite(weight) or float(weight) < (1.0 if sums else 0.0):
            raise wrong("weight", "the number of the steps in the sums, or more", float(weight))
        self.inner.load_state_dict(under("head|"))
        self._sums, self._weight = sums, float(weight)
