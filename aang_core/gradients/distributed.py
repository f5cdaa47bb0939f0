"""The engine of several processes: objectives whole on one of them, three sums a step."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Segment
from aang_core.gradients.passes import Precision
from aang_core.gradients.signals import GradientStatistics, assemble_statistics
from aang_core.gradients.sink import GradientSink
from aang_core.gradients.stream import StreamEngine
from aang_core.processes import Processes
from aang_core.tasks import Batch, Task

Gradients = dict[nn.Parameter, Tensor]

DOT, SQUARE, LOSS = range(3)
"""What is exchanged of every auxiliary task."""


class DistributedEngine:
    """The stream engine, its tasks shared among processes; signals are those of one process.

    Every process holds the model and draws the same rows. The rows of an auxiliary task are run
    whole by one process, so its dot and norm are made there and one number each is exchanged. The
    rows of the end task and of dev are shared batch by batch. The dev gradient, the end task's and
    the weighted sum of the auxiliary ones are each summed over the processes once, since cosines
    and norms are taken of whole gradients: three messages as large as the model where plain
    multitask training has one, and features of the end task's rows for the dev head.

    precision: as that of the stream engine.
    """

    splits_rows = True

    def __init__(
        self, body: nn.Module, dev_head: DevHead, precision: Precision, processes: Processes
    ) -> None:
        self.dev_head = dev_head
        self.processes = processes
        self.losses: Sequence[Tensor] = []
        self._stream = StreamEngine(body, dev_head, precision)
        self._passes = self._stream.passes
        self.scale = self._stream.scale

    def limit_rows(self, rows: int) -> None:
        """See :meth:`aang_core.gradients.GradientEngine.limit_rows`; batches come smaller."""

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """See :meth:`aang_core.gradients.GradientEngine.step`."""
        heads = [segment.task.head for segment in (end, *auxiliaries)]
        parameters = _trained(self._passes.body, *heads)
        body = self._passes.trained()
        mine = self._shares(end.batches)[self.processes.rank]
        features = [self._passes.features(end.batches[i]) for i in mine]
        v: Gradients = {}
        if dev is not None:
            everywhere = self._all_features(len(end.batches), mine, features)
            probe = self.dev_head.fit(end.task, everywhere, end.batches)
            batches = [dev[i] for i in self._shares(dev)[self.processes.rank]]
            v, _ = self._mean_gradient(end.task, probe, batches, None, body)
        sink = GradientSink(self._passes.body, heads, v, measures=dev is not None, scale=self.scale)
        costs = [sum(map(_cost, segment.batches)) for segment in auxiliaries]
        shares = self.processes.own(costs)
        numbers = torch.zeros(3, len(auxiliaries), dtype=parameters[0].dtype)
        numbers = numbers.to(parameters[0].device)
        with sink.attached():
            for i in shares[self.processes.rank]:
                numbers[LOSS, i] = self._stream.accumulate(sink, auxiliaries[i])
        dots, squares = sink.measured()
        for position, i in enumerate(shares[self.processes.rank]):
            numbers[DOT, i], numbers[SQUARE, i] = dots[position], squares[position]
        (numbers,) = self.processes.sum([numbers])
        auxiliary = self._summed(sink.totals, parameters)
        batches = [end.batches[i] for i in mine]
        own, loss = self._mean_gradient(end.task, end.task.head, batches, features, parameters)
        self.losses = [*numbers[LOSS], loss]
        self._leave(auxiliary, own, end.coefficient)
        if dev is None:
            return None
        return self._statistics(end, auxiliaries, numbers, auxiliary, own, v)

    def _shares(self, batches: Sequence[Batch]) -> list[list[int]]:
        return self.processes.own([_cost(batch) for batch in batches])

    def _all_features(
        self, batches: int, numbers: Sequence[int], own: Sequence[Tensor]
    ) -> list[Tensor]:
        """Features of all batches of the end task, in order, in every process.

        numbers: of the batches that are this process's, whose features are ``own``.
        """
        mine = dict(zip(numbers, self._passes.dev_features(own), strict=True))
        like = next(self._passes.body.parameters())
        dims = torch.zeros(batches, _DIMS, dtype=torch.int64, device=like.device)
        for i, features in mine.items():
            dims[i, : features.dim()] = torch.tensor(features.shape)
        (dims,) = self.processes.sum([dims])
        shapes = [[size for size in row if size > 0] for row in dims.tolist()]
        return self.processes.sum(
            [
                mine[i] if i in mine else torch.zeros(shape, dtype=like.dtype, device=like.device)
                for i, shape in enumerate(shapes)
            ]
        )

    def _mean_gradient(
        self,
        task: Task,
        head: nn.Module,
        batches: Sequence[Batch],
        features: list[Tensor] | None,
        parameters: Sequence[nn.Parameter],
    ) -> tuple[Gradients, Tensor]:
        """Gradient of a task's mean loss over the batches of all processes, and that loss.

        batches: those of this process. features: of them, where they have been computed; emptied.
        """
        like = parameters[0]
        # The sum of losses, and of how many targets.
        total = torch.zeros(2, dtype=torch.float64, device=like.device)
        gradients: Gradients = {}
        for batch in batches:
            seen = self._passes.features(batch) if features is None else features.pop(0)
            losses = self._passes.losses(task, head, seen, batch)
            summed = losses.sums.sum()
            total += torch.stack([summed.detach().double(), losses.counts.sum().double()])
            parts = torch.autograd.grad(summed, parameters, allow_unused=True)
            for parameter, part in zip(parameters, parts, strict=True):
                if part is None:
                    continue
                known = gradients.get(parameter)
                gradients[parameter] = part if known is None else known + part
        (total,) = self.processes.sum([total])
        count = total[1].clamp(min=1)
        of_all = self._summed(gradients, parameters)
        true = {p: self.scale.off(g / count.to(g.dtype)) for p, g in of_all.items()}
        return true, total[0] / count

    def _summed(
        self, gradients: Mapping[nn.Parameter, Tensor], parameters: Sequence[nn.Parameter]
    ) -> Gradients:
        """Gradients summed over the processes; parameters that none of them has are left out."""
        device = parameters[0].device
        reached = torch.tensor([p in gradients for p in parameters], dtype=torch.int32)
        (reached,) = self.processes.sum([reached.to(device)])
        kept = [p for p, n in zip(parameters, reached.tolist(), strict=True) if n]
        parts = [gradients[p] if p in gradients else torch.zeros_like(p) for p in kept]
        return dict(zip(kept, self.processes.sum(parts), strict=True))

    def _leave(self, auxiliary: Gradients, own: Gradients, coefficient: float) -> None:
        for parameter in dict.fromkeys((*auxiliary, *own)):
            total = auxiliary.get(parameter)
            if parameter in own:
                part = own[parameter] * coefficient
                total = part if total is None else total + part
            parameter.grad = total

    def _statistics(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        numbers: Tensor,
        auxiliary: Gradients,
        own: Gradients,
        v: Gradients,
    ) -> GradientStatistics:
        body = self._passes.trained()
        of_end = torch.stack([_dot(own, v, body), _dot(own, own, body)])
        measured = torch.stack([numbers[DOT], numbers[SQUARE]])
        dots, squares = torch.cat([measured, of_end.unsqueeze(1)], dim=1)
        return assemble_statistics(
            [*(s.task.name for s in auxiliaries), end.task.name],
            [s.coefficient for s in auxiliaries],
            dots=dots,
            squares=squares,
            auxiliary_square=_dot(auxiliary, auxiliary, body),
            dev_square=_dot(v, v, body),
        )


def task_by_task(
    body: nn.Module,
    dev_head: DevHead,
    precision: Precision = "fp32",
    *,
    processes: Processes,
    hold_end_task: bool = True,
) -> StreamEngine | DistributedEngine:
    """The engine that runs one task at a time, in one process or in several.

    hold_end_task: see :class:`StreamEngine`; several processes always do.
    """
    if processes.size > 1:
        return DistributedEngine(body, dev_head, precision, processes)
    return StreamEngine(body, dev_head, precision, hold_end_task=hold_end_task)


_DIMS = 8
"""More dimensions than features have."""


def _trained(*modules: nn.Module) -> list[nn.Parameter]:
    """The trained parameters of modules, each once, in an order that all processes share."""
    return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))


def _cost(batch: Batch) -> float:
    """What running a batch takes, as the number of its tokens, padding included."""
    return float(min(tensor.numel() for tensor in batch.inputs.values()))


def _dot(
    left: Mapping[nn.Parameter, Tensor],
    right: Mapping[nn.Parameter, Tensor],
    parameters: Sequence[nn.Parameter],
) -> Tensor:
    both = [p for p in parameters if p in left and p in right]
    parts = [torch.dot(left[p].reshape(-1), right[p].reshape(-1)) for p in both]
    return torch.stack(parts).sum() if parts else torch.zeros_like(parameters[0].reshape(-1)[0])
