"""One pass of several tasks' rows through the body, forward and backward."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from aang_core import Batch, Task
from aang_core.gradients import Pack, Passes
from aang_plugin_packed.ledger import PackedLedger, SparseRows, in_stacks, touched
from aang_plugin_packed.rules import DenseUse, SparseUse, Use
from aang_plugin_packed.taps import Taps

DEV = -1
"""The number of the dev rows, among the numbers of the tasks."""


class PackRun:
    """One pass through the body: forward on construction, then every task's head, then backward.

    Args:
        passes: passes through the body.
        taps: reports the uses of parameters in backward.
        ledger: sums dots, squares and gradients.
        batches: rows of each task, by its number in the ledger; dev rows under `DEV`.
        keeps_v: whether the dev gradient is needed after this pass.

    Attributes:
        features: the body's features of each task's rows, as leaves of the heads' graphs.

    Raises:
        CannotPackError: the gradient of something the body computes cannot be split by row.
    """

    def __init__(
        self,
        passes: Passes,
        taps: Taps,
        ledger: PackedLedger,
        batches: Mapping[int, Batch],
        *,
        keeps_v: bool = False,
    ) -> None:
        self._passes = passes
        self._ledger = ledger
        self._batches = batches
        self._keeps_v = keeps_v
        self._tasks = sorted(batches)
        pack = Pack.of(passes.body, [batches[k] for k in self._tasks])
        self._parts = dict(zip(self._tasks, pack.parts, strict=True))
        self._uses: Counter[nn.Parameter] = Counter()
        self._pending: dict[nn.Parameter, Tensor] = {}
        self._tied: dict[nn.Parameter, dict[int, _TiedRows]] = {}
        self._embedded: dict[nn.Parameter, Tensor] = {}
        listening = taps.listening(pack.rows, self._uses, self._embedded, self._report)
        with listening, passes.autocast():
            self._hidden: Tensor = passes.body(**pack.inputs)
        taps.check(self._hidden)
        self._pack = pack
        cut = pack.features(passes.body, self._hidden.detach())
        self.features = {
            k: part.detach().requires_grad_() for k, part in zip(self._tasks, cut, strict=True)
        }

    def dev_backward(self, end_task: Task, probe: nn.Module) -> None:
        """Backward from the dev loss through the dev head to the features of the dev rows.

        Args:
            end_task: the end task.
            probe: the dev head.
        """
        features, batch = self.features[DEV], self._batches[DEV]
        loss = self._passes.losses(end_task, probe, features, batch).mean()
        body = self._passes.trained()
        torch.autograd.backward(loss, inputs=[features, *body])
        for parameter in body:
            if parameter.grad is not None:
                self._hold(parameter, DEV, parameter.grad)
                parameter.grad = None

    def head_backward(self, k: int, task: Task) -> Tensor:
        """Backward from a task's loss through its head to the features of its rows.

        Args:
            k: number of the task in the ledger.
            task: the task.

        Returns:
            Its mean loss, a detached scalar.
        """
        batch, features = self._batches[k], self.features[k]
        loss = self._passes.losses(task, task.head, features, batch).mean()
        loss.backward()
        body = dict.fromkeys(self._passes.trained())
        for parameter in task.head.parameters():
            gradient = parameter.grad
            if gradient is None:
                continue
            parameter.grad = None
            if parameter not in body:
                self._ledger.weigh(parameter, k, gradient)
            elif self._may_be_tied(parameter, k):
                self._enter_tied(parameter, k, gradient)
            else:
                self._hold(parameter, k, gradient)
        return loss.detach()

    def backward(self) -> None:
        """Backward through the body; afterwards the ledger has every gradient."""
        received = torch.zeros_like(self._hidden)
        parts = self._pack.features(self._passes.body, received)
        for part, features in zip(parts, self.features.values(), strict=True):
            if features.grad is not None:
                part.copy_(features.grad)
        hidden = self._hidden
        # The graph's hooks refer to this object; without this it would keep the graph alive.
        del self._hidden, self._pack, parts
        self.features.clear()
        hidden.backward(received)
        for parameter in list(self._pending):
            self._settle_pending(parameter)

    def _report(self, use: Use) -> None:
        """Compute a parameter's gradients, now that the gradient of its module's output exists."""
        parameter = use.parameter
        self._uses[parameter] -= 1
        if self._uses[parameter] == 0 and parameter not in self._pending:
            if isinstance(use, SparseUse):
                self._settle_sparse(use)
            else:
                self._settle(use)
            return
        held = self._held(parameter)
        for i, k in enumerate(self._tasks):
            part = self._parts[k]
            if isinstance(use, SparseUse):
                use.gradient(part).add_to(held[i], 1.0)
            else:
                held[i] += use.gradients([part])[0]
        if self._uses[parameter] == 0:
            self._settle_pending(parameter)

    def _settle(self, use: DenseUse) -> None:
        """Enter the gradients of a parameter that is used once."""
        parameter = use.parameter
        if DEV in self._parts:
            self._ledger.enter_v(parameter, use.gradients([self._parts[DEV]])[0])

        def enter(run: Sequence[int]) -> None:
            gradients = use.gradients([self._parts[k] for k in run])
            self._ledger.add(parameter, run[0], gradients)

        self._in_order(enter, parameter)
        self._forget_v(parameter)

    def _settle_sparse(self, use: SparseUse) -> None:
        """Enter the gradients of an embedding, tied to a decoder or not."""
        parameter = use.parameter
        dev: SparseRows | None = None
        if DEV in self._parts:
            dev = use.gradient(self._parts[DEV])
            self._ledger.enter_sparse_v(parameter, dev)
        tied = self._tied.pop(parameter, {})
        for k in self._tasks:
            if k == DEV:
                continue
            gradient = use.gradient(self._parts[k])
            self._ledger.add_sparse(parameter, k, gradient)
            if k in tied:
                # ‖a + b‖² = ‖a‖² + 2⟨a, b⟩ + ‖b‖², a being the decoder's part and b this one.
                own, of_dev = tied[k]
                self._ledger.add_cross(
                    k,
                    square=2 * (gradient.values * own).sum(),
                    dot=None if dev is None or of_dev is None else (dev.values * of_dev).sum(),
                )
        self._forget_v(parameter)

    def _settle_pending(self, parameter: nn.Parameter) -> None:
        """Enter the gradients of a parameter that is used more than once."""
        held = self._pending.pop(parameter)
        if DEV in self._parts:
            self._ledger.enter_v(parameter, held[self._tasks.index(DEV)])

        def enter(run: Sequence[int]) -> None:
            start = self._tasks.index(run[0])
            self._ledger.add(parameter, run[0], held[start : start + len(run)])

        self._in_order(enter, parameter)
        self._forget_v(parameter)

    def _in_order(self, enter: Callable[[Sequence[int]], None], parameter: nn.Parameter) -> None:
        """Call ``enter`` for the auxiliary tasks in stacks, then for the end task."""
        tasks = [k for k in self._tasks if k != DEV]
        in_stacks(parameter, [k for k in tasks if k != self._ledger.end], enter)
        if self._ledger.end in tasks:
            enter([self._ledger.end])

    def _hold(self, parameter: nn.Parameter, k: int, gradient: Tensor) -> None:
        """Keep a part of task k's gradient until its other parts are computed."""
        self._held(parameter)[self._tasks.index(k)] += gradient

    def _held(self, parameter: nn.Parameter) -> Tensor:
        if parameter not in self._pending:
            self._pending[parameter] = parameter.new_zeros((len(self._tasks), *parameter.shape))
        return self._pending[parameter]

    def _may_be_tied(self, parameter: nn.Parameter, k: int) -> bool:
        """Whether the only other part of task k's gradient comes from one embedding."""
        return (
            parameter in self._embedded
            and self._uses[parameter] == 1
            and k != self._ledger.end
            and parameter not in self._pending
        )

    def _enter_tied(self, parameter: nn.Parameter, k: int, gradient: Tensor) -> None:
        """Enter a decoder's gradient and keep the rows that its embedding also has."""
        self._ledger.add(parameter, k, gradient.unsqueeze(0))
        ids = self._embedded[parameter]
        own = touched(ids[self._parts[k]].flatten(), gradient)
        of_dev = touched(ids[self._parts[DEV]].flatten(), gradient) if DEV in self._parts else None
        self._tied.setdefault(parameter, {})[k] = _TiedRows(own, of_dev)

    def _forget_v(self, parameter: nn.Parameter) -> None:
        if not self._keeps_v:
            self._ledger.forget_v(parameter)


class _TiedRows(NamedTuple):
    """Rows of a decoder's gradient: those of the task's tokens, and those of the dev rows'."""

    own: Tensor
    of_dev: Tensor | None
