"""The head that the dev gradient goes through (TARTAN, section 3.3 and Algorithm 1)."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.gradients.passes import Passes
from aang_core.gradients.row_memory import RowMemory
from aang_core.tasks.saved import SavedStateError
from aang_core.tasks.task import Batch, RowLosses, Task, to_device

ROWS = 256
"""Default number of end-task rows that a dev head is fitted to. With 32 rows, the cosines against
the dev gradient cannot be distinguished from zero."""


class DevHead(ABC):
    """Provides φ*, the end-task head that the dev gradient v goes through.

    A dev head without memory of earlier steps only has to implement `fit`.
    """

    @property
    def ready(self) -> bool:
        """Whether `fit` can be called in this step; otherwise the step measures nothing."""
        return True

    @property
    def remembers(self) -> bool:
        """Whether `observe` is to be called with the end task's rows of every step."""
        return False

    @property
    def draws(self) -> int:
        """Number of end-task rows that it draws for itself in a step that measures."""
        return 0

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:  # noqa: B027
        """Set where to draw rows from.

        Args:
            source: returns that many rows; its state is part of checkpoints.
        """

    @abstractmethod
    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """Fit φ* for this step.

        Args:
            end_task: the end task.
            features: the body's features of each batch, detached.
            batches: the end-task rows of the step.

        Returns:
            φ*, a head that takes the same features as the end task's.
        """

    def observe(  # noqa: B027 - most dev heads have nothing to do here
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        """Remember a step's end-task rows; called after the step's own fit.

        Args:
            features: the body's features of each batch, detached.
            batches: end-task rows of the step.
            begins: False for further rows of the same step.
        """

    def smoothed(self, v: dict[nn.Parameter, Tensor]) -> dict[nn.Parameter, Tensor]:
        """The vector that tasks are measured against, given the step's dev gradient ``v``."""
        return v

    def state_dict(self) -> dict[str, Tensor]:
        """What it remembers from step to step, for checkpoints; not copied."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027 - as above
        """Restore a saved state."""

    def check(self, end_task: Task) -> None:  # noqa: B027 - as above
        """Check that what was restored is of this end task.

        Raises:
            SavedStateError: its head cannot read it.
        """


class EndTaskHead(DevHead):
    """φ* = φ', the end task's own head.

    This is known to fail: φ' is trained with the gradient that the end task's weight scales, so the
    end task always looks most helpful and its weight goes to one (TARTAN, section 3.3, Figure 3).
    It exists to demonstrate that.
    """

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        return end_task.head


class FreshDevHead(DevHead):
    """A head with new random weights at every step, fitted to the rows that it is given.

    An engine passes the step's own end-task rows, whose gradient g_E is then measured, as in
    TARTAN's Algorithm 1. `RememberingDevHead` and `DrawnDevHead` pass other rows. The body is fixed
    during the fit, so it only needs features that are computed anyway and no pass through the body.
    Dropout is off, because φ* stands for the minimiser on its rows. Frozen parameters and buffers
    are those of the end task's head.

    Args:
        generator: source of the random weights, on the CPU so that a seed gives the same weights
            on every device.
        iterations: most full-batch AdamW iterations; AANG uses 10 (appendix D).
        lr: learning rate; AANG uses 1e-2.
        weight_decay: AANG uses 0.1.
        init_std: standard deviation of the random weights; by default that of transformers'
            ``initializer_range``.
        tolerance: the fit ends when an iteration changes the loss by less than this, as in AANG's
            code. This is decided on the device, so that an accelerator need not wait for the host.
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
        self._take_untrained(head, end_task.head)
        self._initialise(head)
        parameters = [p for p in head.parameters() if p.requires_grad]
        if not parameters:
            return head
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
    def _take_untrained(self, head: nn.Module, own: nn.Module) -> None:
        """Copy frozen parameters and buffers of the end task's ``own`` head, as they are now."""
        for parameter, now in zip(head.parameters(), own.parameters(), strict=True):
            if not parameter.requires_grad:
                parameter.copy_(now)
        for buffer, value in zip(head.buffers(), own.buffers(), strict=True):
            buffer.copy_(value)

    @torch.no_grad()
    def _initialise(self, head: nn.Module) -> None:
        """Initialise as transformers does: normal matrices, gains of one, biases of zero."""
        for name, parameter in head.named_parameters():
            if not parameter.requires_grad:
                continue
            if parameter.dim() > 1:
                drawn = torch.randn(
                    parameter.shape, generator=self.generator, dtype=parameter.dtype
                )
                parameter.copy_(to_device(drawn.mul_(self.init_std), parameter.device))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)


class RememberingDevHead(DevHead):
    """Fits φ* to end-task rows of earlier steps, without this step's own. The default.

    If φ* is fitted to the rows whose gradient g_E is then measured, v points away from what is
    specific to these rows, while g_E points towards it: with few rows per step, every loss on the
    label looks worse than it is. AANG's code draws separate rows for the dev head. Rows of earlier
    steps are different rows, too, and cost no pass through the body; their features are a few
    steps old, but θ moves little in that time. If rows of the current step are remembered from an
    earlier pass over the data, they are left out.

    A head fitted to few rows is mostly noise, and so is v. The head is therefore ready only once
    it remembers the rows of two steps, or ``rows`` rows of one: the first two steps of a training
    measure nothing.

    Args:
        inner: fits a head to given features.
        rows: number of rows that it is fitted to, see `RowMemory`.
        keep: selects the part of features to remember; by default all.
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
        """See `DevHead.fit`.

        Raises:
            AangError: nothing is remembered yet.
        """
        if not len(self.memory):
            raise AangError(
                "the dev head is fitted to end-task rows of earlier steps, but there are none yet; "
                "call fit only if it is ready"
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

    @torch.no_grad()
    def check(self, end_task: Task) -> None:
        head = copy.deepcopy(end_task.head).eval()
        dtype = next((p.dtype for p in head.parameters()), torch.float32)
        try:
            for features, batch in zip(*self.memory.latest(self.memory.rows), strict=True):
                end_task.losses(head, features.to(dtype), batch.targets)
        except (RuntimeError, IndexError, KeyError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise SavedStateError(
                f"the end task's head cannot read the rows that are remembered: {reason}"
            ) from error


class DrawnDevHead(DevHead):
    """Fits φ* to end-task training rows drawn only for it, as AANG's code does.

    This costs one more pass through the body, without gradients and without dropout, because the
    head stands for the minimiser on its rows. Every process makes this pass.

    Args:
        inner: fits a head to given features.
        passes: passes through the body.
        rows: number of rows drawn per step.
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
        """See `DevHead.fit`.

        Raises:
            AangError: `draw_from` has not been called.
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
