"""The engine of several processes: objectives whole on one of them, three sums a step."""

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Rider, Segment, members_of
from aang_core.gradients.passes import Precision
from aang_core.gradients.signals import GradientStatistics, assemble_statistics
from aang_core.gradients.sink import GradientSink
from aang_core.gradients.stream import StreamEngine, rider_loss
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, Task

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
    multitask training has one, and features of the end task's rows for the dev head. Tasks that
    share the end task's rows read those features too, so a loss that compares rows with each other
    compares the rows of all processes; each of them costs one more sum.

    precision, clip: as those of the stream engine.
    """

    splits_rows = True

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        precision: Precision,
        processes: Processes,
        *,
        clip: TaskClip = UNCLIPPED,
    ) -> None:
        self.dev_head = dev_head
        self.clip = clip
        self.processes = processes
        self.losses: Sequence[Tensor] = []
        self._stream = StreamEngine(body, dev_head, precision, clip=clip)
        self._passes = self._stream.passes
        self.scale = self._stream.scale

    def limit_rows(self, rows: int) -> None:
        """See :meth:`aang_core.gradients.GradientEngine.limit_rows`; batches come smaller."""

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """See :meth:`aang_core.gradients.GradientEngine.step`."""
        measured = members_of((*auxiliaries, end))
        parameters = _trained(self._passes.body, *(member.task.head for member in measured))
        body = self._passes.trained()
        mine = self._shares(end.batches)[self.processes.rank]
        features = [self._passes.features(end.batches[i]) for i in mine]
        v: Gradients = {}
        everywhere: list[Tensor] = []
        if dev is not None or end.riders or end.remember:
            everywhere = self._all_features(len(end.batches), mine, features)
        if dev is not None:
            probe = self.dev_head.fit(end.task, everywhere, end.batches)
            batches = [dev[i] for i in self._shares(dev)[self.processes.rank]]
            own_v, _ = self._mean_gradient(end.task, probe, batches, None, body)
            v = self.dev_head.smoothed(own_v)
        if end.remember:
            self.dev_head.observe(everywhere, end.batches)
        sink = GradientSink(
            *(self._passes.body, [member.task.head for member in members_of(auxiliaries)], v),
            measures=dev is not None,
            scale=self.scale,
            clip=self.clip,
        )
        numbers = self._run_auxiliaries(sink, auxiliaries, parameters[0])
        auxiliary = self._summed(sink.totals, parameters)
        live = dict(zip(mine, features, strict=True)) if end.riders else {}
        seen = [live.get(i, features) for i, features in enumerate(everywhere)]
        of_riders = [self._rider_gradient(rider, seen, parameters) for rider in end.riders]
        for rider, (gradient, _) in zip(end.riders, of_riders, strict=True):
            _add(auxiliary, self.clip.clipped(gradient, body), rider.coefficient)
        batches = [end.batches[i] for i in mine]
        own, loss = self._mean_gradient(end.task, end.task.head, batches, features, parameters)
        self.losses = [*numbers[LOSS], *(loss for _, loss in of_riders), loss]
        square = _dot(auxiliary, auxiliary, body)
        self._leave(auxiliary, self.clip.clipped(own, body), end.coefficient)
        if dev is None:
            return None
        whole = [*(gradient for gradient, _ in of_riders), own]
        of_end = torch.stack([torch.stack([_dot(g, v, body), _dot(g, g, body)]) for g in whole])
        dots, squares = torch.cat([torch.stack([numbers[DOT], numbers[SQUARE]]), of_end.T], dim=1)
        return assemble_statistics(
            [member.task.name for member in measured],
            [member.coefficient for member in measured[:-1]],
            dots=dots,
            squares=squares,
            auxiliary_square=square,
            dev_square=_dot(v, v, body),
            clip=self.clip,
        )

    def _run_auxiliaries(
        self, sink: GradientSink, auxiliaries: Sequence[Segment], like: Tensor
    ) -> Tensor:
        """Run this process's auxiliary segments; dot, square and loss of every task, ``[3, K]``."""
        first = [0, *itertools.accumulate(len(segment.members) for segment in auxiliaries)]
        numbers = torch.zeros(3, first[-1], dtype=like.dtype, device=like.device)
        costs = [sum(map(_cost, segment.batches)) for segment in auxiliaries]
        mine: list[int] = []
        with sink.attached():
            for i in self.processes.own(costs)[self.processes.rank]:
                losses = self._stream.accumulate(sink, auxiliaries[i])
                places = range(first[i], first[i + 1])
                numbers[LOSS, first[i] : first[i + 1]] = torch.stack(losses)
                mine += places
        sink.settle()
        if sink.measures:
            for place, dot, square in zip(mine, *sink.measured(), strict=True):
                numbers[DOT, place], numbers[SQUARE, place] = dot, square
        (numbers,) = self.processes.sum([numbers])
        return numbers

    def _rider_gradient(
        self, rider: Rider, features: Sequence[Tensor], parameters: Sequence[nn.Parameter]
    ) -> tuple[Gradients, Tensor]:
        """Gradient of a rider's mean loss over the rows of all processes, and that loss.

        features: of every batch of the end task; those of this process with their graph, so that
            each process adds its rows' part of the body's gradient. The head's gradient is the
            same in all of them and is counted in the first alone.
        """
        loss = rider_loss(self._passes, rider, features)
        body = set(self._passes.trained())
        parts = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
        gradients = {
            parameter: self.scale.off(part)
            for parameter, part in zip(parameters, parts, strict=True)
            if part is not None and (parameter in body or self.processes.first)
        }
        return self._summed(gradients, parameters), loss.detach()

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

    def _leave(
        self, auxiliary: Gradients, own: Mapping[nn.Parameter, Tensor], coefficient: float
    ) -> None:
        for parameter in dict.fromkeys((*auxiliary, *own)):
            total = auxiliary.get(parameter)
            if parameter in own:
                part = own[parameter] * coefficient
                total = part if total is None else total + part
            parameter.grad = total


_DIMS = 8
"""More dimensions than features have."""


def _trained(*modules: nn.Module) -> list[nn.Parameter]:
    """The trained parameters of modules, each once, in an order that all processes share."""
    return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))


def _cost(batch: Batch) -> float:
    """What running a batch takes, as the number of its tokens, padding included."""
    return float(min(tensor.numel() for tensor in batch.inputs.values()))


def _add(total: Gradients, gradient: Mapping[nn.Parameter, Tensor], coefficient: float) -> None:
    for parameter, part in gradient.items():
        weighted = part * coefficient
        total[parameter] = total[parameter] + weighted if parameter in total else weighted


def _dot(
    left: Mapping[nn.Parameter, Tensor],
    right: Mapping[nn.Parameter, Tensor],
    parameters: Sequence[nn.Parameter],
) -> Tensor:
    both = [p for p in parameters if p in left and p in right]
    parts = [torch.dot(left[p].reshape(-1), right[p].reshape(-1)) for p in both]
    return torch.stack(parts).sum() if parts else torch.zeros_like(parameters[0].reshape(-1)[0])
