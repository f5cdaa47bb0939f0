"""The engine for several processes: each objective on one process, three large sums per step."""

import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

from aang_core.errors import ConfigError
from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import EngineSettings
from aang_core.gradients.ledger import (
    GradientStatistics,
    TaskClip,
    assemble_statistics,
)
from aang_core.gradients.passes import (
    Gradients,
    backward_over,
    rider_loss,
    taken,
    trained,
)
from aang_core.gradients.segments import (
    Rider,
    Segment,
    batch_norm_of,
    largest_batch,
    members_of,
    tokens,
)
from aang_core.gradients.stream import StreamEngine
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, Task

DOT, SQUARE, LOSS = range(3)
"""Numbers that processes exchange for every auxiliary task."""


class DistributedEngine:
    """The stream engine with its tasks distributed over processes; the signals are the same.

    Every process holds the model and draws the same rows. One process computes all rows of an
    auxiliary task, so it computes the task's dot and norm alone and only those are exchanged. The
    rows of the end task and of dev are distributed batch by batch. Cosines and norms need whole
    gradients, so the dev gradient, the end task's gradient and the weighted sum of the auxiliary
    ones are each summed over the processes once: three messages of the model's size, where plain
    multitask training has one. The features of the end task's rows are exchanged, too, for the dev
    head and for tasks that share these rows, so that a loss that compares rows compares those of
    all processes; each such task costs one more sum.

    Args:
        body: the module that all tasks share.
        dev_head: the head that the dev gradient goes through.
        settings: the options of the engine.
        processes: the processes that share the training.

    Raises:
        ConfigError: the body has batch normalisation.
    """

    splits_rows = True

    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, body: nn.Module, dev_head: DevHead, settings: EngineSettings, processes: Processes
    ) -> None:
        if (name := batch_norm_of(body)) is not None:
            raise ConfigError(
                f"several processes cannot share a training of a body with batch normalisation "
                f"({name}), whose statistics would differ between them; use one process, or "
                "another normalisation"
            )
        self.dev_head = dev_head
        self.clip = TaskClip(settings.task_clip)
        self.processes = processes
        self.losses: Sequence[Tensor] = []
        self._stream = StreamEngine(body, dev_head, settings.precision, clip=self.clip)
        self._passes = self._stream.passes
        self.scale = self._stream.scale

    def limit_rows(self, rows: int) -> None:
        """See `GradientEngine.limit_rows`; nothing to do, because batches arrive smaller."""

    def step(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """See `GradientEngine.step`."""
        measured = members_of((*auxiliaries, end))
        parameters = trained(self._passes.body, *(member.task.head for member in measured))
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
            own_v, _ = self._mean_gradient(end.task, probe, batches, body)
            v = self.dev_head.smoothed(own_v)
        if end.remember:
            self.dev_head.observe(everywhere, end.batches)
        measures = norms or dev is not None
        numbers, found = self._run_auxiliaries(
            auxiliaries, v, largest_batch((*auxiliaries, end)), measures=measures
        )
        auxiliary = _summed_over(self.processes, found, parameters)
        live = dict(zip(mine, features, strict=True)) if end.riders else {}
        seen = [live.get(i, features) for i, features in enumerate(everywhere)]
        of_riders = [self._rider_gradient(rider, seen, parameters) for rider in end.riders]
        for rider, (gradient, _) in zip(end.riders, of_riders, strict=True):
            _add(auxiliary, _clipped(self.clip, gradient, body), rider.coefficient)
        batches = [end.batches[i] for i in mine]
        own, loss = self._mean_gradient(end.task, end.task.head, batches, parameters, features)
        self.losses = [*numbers[LOSS], *(loss for _, loss in of_riders), loss]
        square = _dot(auxiliary, auxiliary, body)
        self._leave(auxiliary, _clipped(self.clip, own, body), end.coefficient)
        if not measures:
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
        self, auxiliaries: Sequence[Segment], v: Gradients, most_rows: int, *, measures: bool
    ) -> tuple[Tensor, Gradients]:
        """Run this process's auxiliary segments.

        Args:
            auxiliaries: the auxiliary segments of all processes.
            v: the dev gradient.
            most_rows: most rows in a pass that several segments share.
            measures: whether to measure each task.

        Returns:
            ``[3, K]``, dot, square and loss of each of the K auxiliary tasks of all processes; and
            the weighted sum of this process's gradients.
        """
        first = [0, *itertools.accumulate(len(segment.members) for segment in auxiliaries)]
        like = next(self._passes.body.parameters())
        numbers = torch.zeros(3, first[-1], dtype=like.dtype, device=like.device)
        costs = [sum(map(tokens, segment.batches)) for segment in auxiliaries]
        own = shares(costs, self.processes.size)[self.processes.rank]
        mine = [place for i in own for place in range(first[i], first[i + 1])]
        segments = [auxiliaries[i] for i in own]
        if measures or self.clip.norm is not None:
            ledger = self._stream.ledger(segments, end=None)
            for parameter, part in v.items():
                ledger.enter_v(parameter, part)
            with ledger.attached():
                losses = self._stream.measure(ledger, segments)
            found = ledger.totals
            if mine:
                for place, dot, square in zip(mine, *ledger.measured(), strict=True):
                    numbers[DOT, place], numbers[SQUARE, place] = dot, square
        else:
            losses = self._stream.add_up(segments, most_rows)
            heads = [member.task.head for member in members_of(segments)]
            found = taken(trained(self._passes.body, *heads))
        for place, loss in zip(mine, losses, strict=True):
            numbers[LOSS, place] = loss
        (numbers,) = self.processes.sum([numbers])
        return numbers, found

    def _rider_gradient(
        self, rider: Rider, features: Sequence[Tensor], parameters: Sequence[nn.Parameter]
    ) -> tuple[Gradients, Tensor]:
        """Gradient of a rider's mean loss over the rows of all processes, and that loss.

        Every process has the loss of all rows. What passes through the features of a row counts in
        the process that has the row. What reaches parameters through the head itself, such as word
        embeddings tied to a decoder, counts in the first process alone. Dropout in the head differs
        between processes, but both parts stay unbiased. The losses differ, and the trainer takes
        the first one's.

        Args:
            rider: the task.
            features: of every batch of the end task; only this process's have a graph.
            parameters: the parameters to differentiate by.
        """
        leaves = [f.detach().requires_grad_(f.requires_grad) for f in features]
        loss = rider_loss(self._passes, rider, leaves)
        live = [(f, leaf) for f, leaf in zip(features, leaves, strict=True) if leaf.requires_grad]
        of_head = parameters if self.processes.first else []
        found = _gradients([loss], [*(leaf for _, leaf in live), *of_head])
        reached = [(f, found[leaf]) for f, leaf in live if leaf in found]
        gradients = _gradients(
            [f for f, _ in reached], self._passes.trained(), [gradient for _, gradient in reached]
        )
        _add(gradients, {p: found[p] for p in of_head if p in found}, 1.0)
        true = {p: self._passes.scale.off(g) for p, g in gradients.items()}
        return _summed_over(self.processes, true, parameters), loss.detach()

    def _shares(self, batches: Sequence[Batch]) -> list[list[int]]:
        return shares([tokens(batch) for batch in batches], self.processes.size)

    def _all_features(
        self, batches: int, numbers: Sequence[int], own: Sequence[Tensor]
    ) -> list[Tensor]:
        """Exchange the features of all batches of the end task.

        Args:
            batches: number of batches.
            numbers: which of them this process has computed.
            own: the features of those.

        Returns:
            The features of every batch, in order.
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
        parameters: Sequence[nn.Parameter],
        features: Sequence[Tensor] | None = None,
    ) -> tuple[Gradients, Tensor]:
        """The gradient of a task's mean loss over the rows of all processes, and that loss."""
        taken(parameters)
        seen = map(self._passes.features, batches) if features is None else features
        total, count = backward_over(*(self._passes, task, head, batches, seen), inputs=parameters)
        found = _summed_over(self.processes, taken(parameters), parameters)
        (numbers,) = self.processes.sum([torch.stack([total.double(), count.double()])])
        total, count = numbers
        # Clamped after the sum: a process without rows of the task must add no targets.
        count = count.clamp(min=1)
        scale = self._passes.scale
        true = {p: scale.off(g.div_(count.to(g.dtype))) for p, g in found.items()}
        return true, total / count

    def _leave(
        self, auxiliary: Gradients, own: Mapping[nn.Parameter, Tensor], coefficient: float
    ) -> None:
        _add(auxiliary, own, coefficient)
        for parameter, total in auxiliary.items():
            parameter.grad = total


_DIMS = 8
"""Room for the shape of features, which have fewer dimensions than this."""


Differentiated = TypeVar("Differentiated", bound=Tensor)


def _gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Differentiated],
    gradients: Sequence[Tensor] | None = None,
) -> dict[Differentiated, Tensor]:
    """The gradient of outputs with respect to the inputs that they depend on; keeps the graph."""
    if not inputs or not any(output.requires_grad for output in outputs):
        return {}
    found = torch.autograd.grad(outputs, inputs, gradients, allow_unused=True, retain_graph=True)
    return {x: g for x, g in zip(inputs, found, strict=True) if g is not None}


def _add(total: Gradients, gradient: Mapping[nn.Parameter, Tensor], coefficient: float) -> None:
    if coefficient == 0.0:
        return  # zeros would count as a gradient: see `Ledger`
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


def _summed_over(
    processes: Processes,
    gradients: Mapping[nn.Parameter, Tensor],
    parameters: Sequence[nn.Parameter],
) -> Gradients:
    """Sum gradients over processes.

    Args:
        processes: the processes.
        gradients: those of this process.
        parameters: all parameters that any process may have a gradient of.

    Returns:
        The sums, without parameters that no process has a gradient of.
    """
    device = parameters[0].device
    reached = torch.tensor([p in gradients for p in parameters], dtype=torch.int32)
    (reached,) = processes.sum([reached.to(device)])
    kept = [p for p, n in zip(parameters, reached.tolist(), strict=True) if n]
    parts = [gradients[p] if p in gradients else torch.zeros_like(p) for p in kept]
    return dict(zip(kept, processes.sum(parts), strict=True))


def shares(costs: Sequence[float], processes: int) -> list[list[int]]:
    """Distribute whole pieces of work so that all processes have about as much to do.

    The longest piece goes first, always to the process with the least work: at most 4/3 of the best
    possible (Graham, 1969).

    Args:
        costs: of each piece.
        processes: the number of processes.

    Returns:
        For each process, the indices of its pieces in ascending order.
    """
    loads = [0.0] * processes
    found: list[list[int]] = [[] for _ in loads]
    for piece in sorted(range(len(costs)), key=lambda i: -costs[i]):
        process = loads.index(min(loads))
        loads[process] += costs[piece]
        found[process].append(piece)
    return [sorted(share) for share in found]


def _clipped(clip: TaskClip, gradient: Gradients, body: Sequence[nn.Parameter]) -> Gradients:
    """A task's gradient with its part over ``body`` clipped."""
    of_body = dict.fromkeys(p for p in body if p in gradient)
    if clip.norm is None or not of_body:
        return gradient
    factor = clip.factor(torch.stack([gradient[p].square().sum() for p in of_body]).sum())
    return {p: g * factor if p in of_body else g for p, g in gradient.items()}
