"""The head that the dev gradient goes through (TARTAN, section 3.3 and Algorithm 1)."""

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from aang_core.tasks import Batch, RowLosses, Task


class DevHead(Protocol):
    """Provides φ*, the end-task head through which the dev gradient v is taken."""

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """φ* for this step.

        features, batches: the end-task rows of the step, and what the body makes of each batch,
            detached from it.
        """
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """What it keeps from step to step, for checkpoints."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up where ``state`` left off."""
        ...


class EndTaskHead:
    """φ* = φ', the end task's own head.

    The known failure: φ' is trained on the very gradient that its weight scales, so the end task
    always looks like the best helper and its weight rails to one (TARTAN, section 3.3, Figure 3).
    Kept to show just that.
    """

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        return end_task.head

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """There is nothing to take up."""


class FreshDevHead:
    """A head initialised afresh at every step and fitted to the step's end-task rows.

    TARTAN's Algorithm 1 fits φ* on the training batch of the end-task loss with the body fixed, so
    the features that the end-task loss needs anyway are all it takes: no pass through the body.
    Dropout is off, because φ* stands for the minimiser on this batch.

    iterations, lr, weight_decay: full-batch AdamW; AANG takes 10, 1e-2 and 0.1 (appendix D).
    init_std: standard deviation of the fresh weights; the encoder's own ``initializer_range``.
    generator: source of the fresh weights, on the CPU so that a seed means the same everywhere.
    """

    def __init__(
        self,
        generator: torch.Generator,
        *,
        iterations: int = 10,
        lr: float = 1e-2,
        weight_decay: float = 0.1,
        init_std: float = 0.02,
    ) -> None:
        self.generator = generator
        self.iterations = iterations
        self.lr = lr
        self.weight_decay = weight_decay
        self.init_std = init_std
        self._head: nn.Module | None = None

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        if self._head is None:
            self._head = copy.deepcopy(end_task.head).eval()
        head = self._head
        self._initialise(head)
        optimizer = torch.optim.AdamW(
            head.parameters(), lr=self.lr, weight_decay=self.weight_decay, fused=True
        )
        with torch.enable_grad():
            for _ in range(self.iterations):
                optimizer.zero_grad(set_to_none=True)
                parts = [
                    end_task.losses(head, f, batch.targets)
                    for f, batch in zip(features, batches, strict=True)
                ]
                RowLosses.pool(parts).mean().backward()
                optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return head

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """There is nothing to take up: every step begins anew."""

    @torch.no_grad()
    def _initialise(self, head: nn.Module) -> None:
        """Matrices normal with ``init_std``, gains one, biases zero, as transformers' heads are."""
        for name, parameter in head.named_parameters():
            if parameter.dim() > 1:
                drawn = torch.randn(
                    parameter.shape, generator=self.generator, dtype=parameter.dtype
                )
                parameter.copy_(drawn.mul_(self.init_std))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)


class RememberingDevHead:
    """Fits φ* to the end-task rows of the steps before, this step's own left out.

    A head that is fitted to the very rows whose gradient g_E is then measured makes v point away
    from what is peculiar to them, and g_E points towards it: with few rows a step, every loss on
    the label looks worse than it is. The features of earlier rows are a few steps old, as θ moves
    little between two steps, and cost no pass through the body. A deviation from TARTAN's
    Algorithm 1, which fits φ* to the step's own rows; the first step can do no other.

    fresh: fits a head to given features. steps: how many are remembered.
    keep: what to keep of features; by default all.
    """

    def __init__(
        self,
        fresh: FreshDevHead,
        steps: int = 8,
        keep: Callable[[Tensor], Tensor] = lambda features: features,
    ) -> None:
        self.fresh = fresh
        self._keep = keep
        self._memory: deque[Sequence[tuple[Tensor, Mapping[str, Tensor]]]] = deque(maxlen=steps)

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        step = [
            (self._keep(f), dict(batch.targets)) for f, batch in zip(features, batches, strict=True)
        ]
        known = [part for remembered in self._memory for part in remembered] or step
        self._memory.append(step)
        return self.fresh.fit(
            end_task,
            [kept for kept, _ in known],
            [Batch({}, targets, len(kept)) for kept, targets in known],
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {
            name: tensor
            for i, step in enumerate(self._memory)
            for j, (features, targets) in enumerate(step)
            for name, tensor in (
                (f"{i}|{j}|features", features),
                *((f"{i}|{j}|targets|{key}", value) for key, value in targets.items()),
            )
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """See :meth:`DevHead.load_state_dict`."""
        self._memory.clear()
        parts: dict[int, dict[int, tuple[list[Tensor], dict[str, Tensor]]]] = {}
        for name, tensor in state.items():
            i, j, kind, *key = name.split("|")
            features, targets = parts.setdefault(int(i), {}).setdefault(int(j), ([], {}))
            if kind == "features":
                features.append(tensor)
            else:
                targets[key[0]] = tensor
        for _, step in sorted(parts.items()):
            self._memory.append([(f[0], targets) for _, (f, targets) in sorted(step.items())])
