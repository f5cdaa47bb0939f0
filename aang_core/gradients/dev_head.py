"""The head that the dev gradient goes through (TARTAN, section 3.3 and Algorithm 1)."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.gradients.passes import Passes
from aang_core.gradients.row_memory import RowMemory
from aang_core.tasks.task import Batch, RowLosses, Task

ROWS = 256
"""How many end-task rows a dev head is fitted to unless told otherwise: fitted to 32, it gives a
dev gradient whose cosines cannot be told from zero."""


class DevHead(ABC):
    """Provides φ*, the end-task head through which the dev gradient v is taken.

    What keeps nothing from step to step has to write :meth:`fit` alone.
    """

    @property
    def ready(self) -> bool:
        """Whether it can give a head in this step; a step in which it cannot measures nothing."""
        return True

    @property
    def remembers(self) -> bool:
        """Whether :meth:`observe` is to see the end task's rows of every step."""
        return False

    @property
    def draws(self) -> int:
        """How many end-task rows it draws for itself in a step that measures."""
        return 0

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:  # noqa: B027
        """Draw so many rows from ``source``, whose state a checkpoint holds."""

    @abstractmethod
    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """φ* for this step.

        features, batches: the end-task rows of the step, and what the body makes of each batch,
            detached from it.
        """

    def observe(  # noqa: B027 - most dev heads have nothing to do here
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        """Take note of a step's end-task rows, after the step's own head has been fitted.

        features, batches: as for :meth:`fit`. begins: False for further rows of the same step.
        """

    def smoothed(self, v: dict[nn.Parameter, Tensor]) -> dict[nn.Parameter, Tensor]:
        """What the tasks of a step are measured against, given the step's own dev gradient."""
        return v

    def state_dict(self) -> dict[str, Tensor]:
        """What it keeps from step to step, for checkpoints; copies nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027 - as above
        """Restore what :meth:`state_dict` gave."""


class EndTaskHead(DevHead):
    """φ* = φ', the end task's own head.

    The known failure: φ' is trained on the very gradient that its weight scales, so the end task
    always looks like the best helper and its weight rails to one (TARTAN, section 3.3, Figure 3).
    Kept to show just that.
    """

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        return end_task.head


class FreshDevHead(DevHead):
    """A head initialised afresh at every step and fitted to the rows that it is given.

    An engine gives it the step's own end-task rows, as TARTAN's Algorithm 1 is written: those whose
    gradient g_E is then measured. :class:`RememberingDevHead` and :class:`DrawnDevHead` give it
    others. The body is fixed meanwhile, so features that are computed anyway are all it takes: no
    pass through the body. Dropout is off, because φ* stands for the minimiser on its rows.

    Args:
        generator: source of the fresh weights, on the CPU so that a seed means the same everywhere.
        iterations: the most full-batch AdamW iterations; AANG takes 10 (appendix D).
        lr: learning rate; AANG takes 1e-2.
        weight_decay: AANG takes 0.1.
        init_std: standard deviation of the fresh weights; the encoder's own
            ``initializer_range``.
        tolerance: the fit ends when an iteration changes the loss by less than this, as in AANG's
            code. Decided on the device, so that no accelerator waits.
    """

    def __init__(
        self,
        generator: torch.Generator,
        *,
        iterations: int = 10,
        lr: float = 1e-2,
        weight_decay: float = 0.1,
        init_std: float = 0.02,
        tolerance: float = 1e-3,
    ) -> None:
        self.generator = generator
        self.iterations = iterations
        self.lr = lr
        self.weight_decay = weight_decay
        self.init_std = init_std
        self.tolerance = tolerance
        self._head: nn.Module | None = None

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        if self._head is None:
            self._head = copy.deepcopy(end_task.head).eval()
        head = self._head
        self._initialise(head)
        parameters = list(head.parameters())
        optimizer = torch.optim.AdamW(
            parameters, lr=self.lr, weight_decay=self.weight_decay, fused=True
        )
        last: Tensor | None = None
        ended: Tensor | None = None
        for _ in range(self.iterations):
            optimizer.zero_grad(set_to_none=True)
            with torch.enable_grad():
                parts = [
                    end_task.losses(head, f, batch.targets)
                    for f, batch in zip(features, batches, strict=True)
                ]
                loss = RowLosses.pool(parts).mean()
                loss.backward()
            now = loss.detach()
            if last is not None:
                small = (last - now).abs() < self.tolerance
                ended = small if ended is None else ended | small
            last = now
            before = [p.detach().clone() for p in parameters]
            optimizer.step()
            if ended is not None:
                with torch.no_grad():
                    for parameter, kept in zip(parameters, before, strict=True):
                        parameter.copy_(torch.where(ended, kept, parameter))
        optimizer.zero_grad(set_to_none=True)
        return head

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


class RememberingDevHead(DevHead):
    """Fits φ* to end-task rows of the steps before, this step's own left out. The default.

    A head that is fitted to the very rows whose gradient g_E is then measured makes v point away
    from what is peculiar to them, and g_E points towards it: with few rows a step, every loss on
    the label looks worse than it is. AANG's code draws rows of their own for the dev head; those of
    the steps before are other rows too and cost no pass through the body. Their features are a few
    steps old, as θ moves little between two steps. Rows of the step itself that are remembered from
    the pass over the data before are left out.

    A head fitted to a few rows is mostly noise, and so is the v that goes through it. So the rows
    of two steps (or ``rows`` of one) have to be remembered before it is ready: the first two steps
    of a training measure nothing, rather than fit it to the step's own rows.

    Args:
        inner: fits a head to given features.
        rows: how many rows it is fitted to, see :class:`RowMemory`.
        keep: what to keep of features; by default all.
    """

    def __init__(
        self,
        inner: DevHead,
        rows: int = ROWS,
        keep: Callable[[Tensor], Tensor] = lambda features: features,
    ) -> None:
        self.inner = inner
        self.memory = RowMemory(rows, keep)

    @property
    def ready(self) -> bool:
        return self.memory.steps > 1 or len(self.memory) >= self.memory.rows

    @property
    def remembers(self) -> bool:
        return True

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """See :meth:`DevHead.fit`.

        Raises:
            AangError: nothing is remembered yet.
        """
        if not len(self.memory):
            raise AangError(
                "the dev head is fitted to end-task rows of earlier steps and has seen none; ask "
                "whether it is ready, and measure nothing where it is not"
            )
        return self.inner.fit(end_task, *self.memory.latest(self.memory.rows, without=batches))

    def observe(
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        self.memory.observe(features, batches, begins=begins)

    def state_dict(self) -> dict[str, Tensor]:
        return self.memory.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.memory.load_state_dict(state)


class DrawnDevHead(DevHead):
    """Fits φ* to end-task training rows that are drawn for it alone, as AANG's code does.

    They cost one more pass through the body, without gradients and, as the head stands for the
    minimiser on its rows, without dropout. Of several processes each makes that pass.

    Args:
        inner: fits a head to given features.
        passes: of the body.
        rows: how many rows are drawn for a step.
    """

    def __init__(self, inner: DevHead, passes: Passes, rows: int = ROWS) -> None:
        self.inner = inner
        self._passes = passes
        self._rows = rows
        self._source: Callable[[int], Sequence[Batch]] | None = None

    @property
    def draws(self) -> int:
        return self._rows

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:
        self._source = source

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """See :meth:`DevHead.fit`.

        Raises:
            AangError: nobody has said where rows are drawn.
        """
        if self._source is None:
            raise AangError("a dev head on drawn rows needs rows to draw: call draw_from first")
        drawn = self._source(self._rows)
        body = self._passes.body
        was_training = body.training
        body.eval()
        try:
            with torch.no_grad():
                seen = self._passes.dev_features([self._passes.features(b) for b in drawn])
        finally:
            body.train(was_training)
        return self.inner.fit(end_task, seen, drawn)
