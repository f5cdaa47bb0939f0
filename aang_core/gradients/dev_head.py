"""The head that the dev gradient goes through (TARTAN, section 3.3 and Algorithm 1)."""

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.gradients.passes import Gradients, Passes
from aang_core.plugins.primitive import TargetEntry
from aang_core.plugins.registry import Registry
from aang_core.tasks.task import Batch, RowLosses, Task, to_device

ROWS = 256
"""Default number of end-task rows that a dev head is fitted to. With 32 rows, the cosines against
the dev gradient cannot be distinguished from zero."""

_KINDS, _FITS = ("remembered", "own-rows", "end-task"), ("adamw",)
"""The dev heads that need no plug-in: which rows they are fitted to, and how."""

_BETAS = (0.9, 0.98)
"""The betas of the fit by AdamW, as in AANG's code."""

_FEATURES, _NUMBERS = "features", "targets|/numbers"

_Part = dict[str, Tensor]
"""Features of a batch's rows, their targets under ``targets|NAME``, and their numbers if known."""


class DevAverage:
    """A running mean of the dev gradient over the steps that measure.

    With v_t the dev gradient of the t-th step that measures, tasks are measured against

        v̄_t = Σ_s β^(t − s) v_s / Σ_s β^(t − s), s = 1, …, t,

    an exponential mean. Dev rows and the fit of φ* differ from step to step; the mean is less noisy
    than v_t and lags a little behind it. It needs one more buffer of the body's size.

    Args:
        body: θ, the parameters that the mean covers.
        beta: β, from 0 (no memory) up to, but not including, 1.
    """

    def __init__(self, body: nn.Module, beta: float) -> None:
        self.beta = beta
        self._names = {p: name for name, p in body.named_parameters() if p.requires_grad}
        self._sums: dict[str, Tensor] = {}
        self._weight = 0.0

    def with_step(self, v: Gradients) -> "DevAverage":
        """The average with a step's dev gradient ``v``; this one stays as it is."""
        after = copy.copy(self)
        after._sums = {name: self.beta * total for name, total in self._sums.items()}
        for parameter, gradient in v.items():
            name, sums = self._names[parameter], after._sums
            sums[name] = sums[name].add_(gradient) if name in sums else gradient.clone()
        after._weight = self.beta * self._weight + 1.0
        return after

    def mean(self) -> Gradients:
        """v̄_t, by parameter."""
        named = ((p, self._sums.get(name)) for p, name in self._names.items())
        return {p: total / self._weight for p, total in named if total is not None}

    def state_dict(self) -> dict[str, Tensor]:
        """The sums and their weight; not copied."""
        weight = torch.tensor(self._weight, dtype=torch.float64)
        return {"weight": weight, **{f"sum|{name}": total for name, total in self._sums.items()}}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a saved state."""
        self._sums, self._weight = _under("sum|", state), float(state["weight"])


class DevHead(ABC):
    """Provides φ*, the end-task head that the dev gradient v goes through.

    A dev head without memory of earlier steps only has to implement `fit`. One with memory replaces
    what it remembers and changes nothing in place, so that it can be restored when a step is
    repeated.

    Attributes:
        ready: whether `fit` can be called in this step; otherwise the step measures nothing.
        remembers: whether `observe` is to be called with the end task's rows of every step.
        draws: number of end-task rows that it draws for itself in a step that measures.
        average: averages v over steps; None to measure against the step's own v.
    """

    remembers = False
    draws = 0
    average: DevAverage | None = None

    @property
    def ready(self) -> bool:
        return True

    def draw_from(self, source: Callable[[int], Sequence[Batch]]) -> None:  # noqa: B027
        """Set where to draw rows from.

        Args:
            source: returns the given number of rows; its state is part of checkpoints.
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

    def smoothed(self, v: Gradients) -> Gradients:
        """The vector that tasks are measured against, given the step's dev gradient ``v``."""
        if self.average is None:
            return v
        self.average = self.average.with_step(v)
        return self.average.mean()

    def state_dict(self) -> dict[str, Tensor]:
        """What it knows from earlier steps, for checkpoints; not copied."""
        if self.average is None:
            return self.remembered()
        own = {f"head|{name}": tensor for name, tensor in self.remembered().items()}
        return own | self.average.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a saved state."""
        if self.average is None:
            self.remember(state)
        else:
            self.average.load_state_dict(state)
            self.remember(_under("head|", state))

    def remembered(self) -> dict[str, Tensor]:
        """The rows that it remembers from earlier steps, by name."""
        return {}

    def remember(self, rows: Mapping[str, Tensor]) -> None:  # noqa: B027 - as above
        """Restore what `remembered` returned."""


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

    An engine passes the step's own end-task rows, whose gradient g_E is then measured. TARTAN's
    Algorithm 1 can be read so, or as rows of its own; its authors' code takes dev rows.
    `RememberingDevHead` passes rows of earlier steps. The body is fixed
    during the fit, so it only needs features that are computed anyway and no pass through the body.
    Dropout is off, because φ* stands for the minimiser on its rows. Frozen parameters and buffers
    are those of the end task's head.

    Args:
        generator: source of the random weights, on the CPU so that a seed gives the same weights
            on every device.
        iterations: most full-batch AdamW iterations; AANG uses 10 (appendix D).
        lr: learning rate; AANG uses 1e-2, TARTAN 1e-3.
        weight_decay: AANG uses 0.1.
        init_std: standard deviation of the random weights; by default that of transformers'
            ``initializer_range``.
        tolerance: the fit ends after the iteration whose loss differs by less than this from that
            of the iteration before, as in AANG's code. This is decided on the device, so that an
            accelerator need not wait for the host.
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
        self._begin(head, end_task.head)
        parameters = [p for p in head.parameters() if p.requires_grad]
        if not parameters:
            return head
        optimizer = torch.optim.AdamW(
            parameters, lr=self.lr, betas=_BETAS, weight_decay=self.weight_decay, fused=True
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
            before = [p.detach().clone() for p in parameters]
            optimizer.step()
            if ended is not None:
                with torch.no_grad():
                    for parameter, kept in zip(parameters, before, strict=True):
                        parameter.copy_(torch.where(ended, kept, parameter))
            # Only after the update, so that the last iteration's step is kept.
            if last is not None:
                small = (last - now).abs() < self.tolerance
                ended = small if ended is None else ended | small
            last = now
        optimizer.zero_grad(set_to_none=True)
        return head

    @torch.no_grad()
    def _begin(self, head: nn.Module, own: nn.Module) -> None:
        """Initialise as transformers does: normal matrices, gains of one, biases of zero.

        Frozen parameters, buffers, and vectors and scalars that are neither gain nor bias, such as
        a temperature, are those of the end task's ``own`` head.
        """
        for (name, parameter), now in zip(head.named_parameters(), own.parameters(), strict=True):
            last = name.rpartition(".")[2]
            if parameter.requires_grad and parameter.dim() > 1:
                drawn = torch.randn(
                    parameter.shape, generator=self.generator, dtype=parameter.dtype
                )
                parameter.copy_(to_device(drawn.mul_(self.init_std), parameter.device))
            elif parameter.requires_grad and "bias" in last:
                parameter.zero_()
            elif parameter.requires_grad and last.endswith("weight"):
                parameter.fill_(1.0)
            else:
                parameter.copy_(now)
        for buffer, value in zip(head.buffers(), own.buffers(), strict=True):
            buffer.copy_(value)


class RememberingDevHead(DevHead):
    """Fits φ* to end-task rows of earlier steps, without this step's own. The default.

    If φ* is fitted to the rows whose gradient g_E is then measured, v points away from what is
    specific to these rows, while g_E points towards it: with few rows per step, every loss on the
    label looks worse than it is. AANG's code draws separate rows for the dev head. Rows of earlier
    steps are different rows, too, and cost no pass through the body; their features are a few
    steps old, but θ moves little in that time. If rows of the current step are remembered from an
    earlier pass over the data, they are left out.

    Which rows are dropped depends only on their positions, not on how the rows of a step are split
    into batches: several processes split them differently than one, but remember the same.

    A head fitted to few rows is mostly noise, and so is v. The head is therefore ready only once
    it remembers the rows of two steps, or ``rows`` rows of one: the first two steps of a training
    measure nothing.

    Args:
        inner: fits a head to given features.
        rows: number of rows that it remembers and is fitted to; the oldest are dropped.
        keep: selects the part of features ``[B, ...]`` to remember; by default all.
    """

    remembers = True

    def __init__(
        self,
        inner: DevHead,
        rows: int = ROWS,
        keep: Callable[[Tensor], Tensor] = lambda features: features,
    ) -> None:
        self.inner = inner
        self.rows = rows
        self._keep = keep
        self._steps: list[list[_Part]] = []

    @property
    def ready(self) -> bool:
        known = sum(len(part[_FEATURES]) for step in self._steps for part in step)
        return len(self._steps) > 1 or known >= self.rows

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        """See `DevHead.fit`.

        Raises:
            AangError: nothing is remembered yet.
        """
        if not self._steps:
            raise AangError(
                "the dev head is fitted to end-task rows of earlier steps, but there are none yet; "
                "call fit only if it is ready"
            )
        return self.inner.fit(end_task, *self.latest(self.rows, without=batches))

    def observe(
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        """See `DevHead.observe`.

        Raises:
            AangError: a target does not have one entry per row.
        """
        parts = [_part(self._keep(f), batch) for f, batch in zip(features, batches, strict=True)]
        before = self._steps if begins else self._steps[:-1]
        of_step = parts if begins or not self._steps else [*self._steps[-1], *parts]
        self._steps = _latest([*before, of_step], self.rows)

    def latest(self, rows: int, without: Sequence[Batch] = ()) -> tuple[list[Tensor], list[Batch]]:
        """The latest rows, oldest first.

        Args:
            rows: most rows to return.
            without: rows to leave out if they are remembered from an earlier pass over the data
                and batches know their numbers; they are kept if nothing else is left.

        Returns:
            Features ``[B, ...]`` of each batch, and batches that hold the targets.
        """
        parts = [part for step in _latest(self._steps, rows) for part in step]
        numbers = [batch.numbers for batch in without if batch.numbers is not None]
        if numbers:
            parts = _without(parts, torch.cat(numbers)) or parts
        # Neighbours of equal shapes are joined, for fewer passes through a head.
        alike = itertools.groupby(parts, lambda part: {k: t.shape[1:] for k, t in part.items()})
        groups = [list(group) for _, group in alike]
        joined = [{key: torch.cat([p[key] for p in group]) for key in group[0]} for group in groups]
        features = [part[_FEATURES] for part in joined]
        batches = [Batch({}, _under("targets|", p), len(p[_FEATURES])) for p in joined]
        return features, batches

    def remembered(self) -> dict[str, Tensor]:
        """All remembered tensors, named by step and batch; not copied."""
        return {
            f"{i}|{j}|{name}": tensor
            for i, step in enumerate(self._steps)
            for j, part in enumerate(step)
            for name, tensor in part.items()
        }

    def remember(self, rows: Mapping[str, Tensor]) -> None:
        """Restore what `remembered` returned."""
        steps: dict[int, dict[int, _Part]] = {}
        for place, tensor in rows.items():
            step, batch, name = place.split("|", 2)
            part = steps.setdefault(int(step), {}).setdefault(int(batch), {})
            part[name] = tensor.cpu() if name == _NUMBERS else tensor
        self._steps = [[step[j] for j in sorted(step)] for _, step in sorted(steps.items())]


def first_token(features: Tensor) -> Tensor:
    """The first token's hidden state, which classification reads.

    Args:
        features: hidden states ``[B, T, H]``.

    Returns:
        ``[B, 1, H]``, a copy.
    """
    return features[:, :1].clone()


def _part(features: Tensor, batch: Batch) -> _Part:
    part = {_FEATURES: features, **{f"targets|{k}": t for k, t in batch.targets.items()}}
    if batch.numbers is not None:
        part[_NUMBERS] = batch.numbers
    for key, tensor in part.items():
        if not tensor.dim() or len(tensor) != len(features):
            raise AangError(
                f"the dev head remembers rows, but the end task's {key.partition('|')[2]!r} does "
                'not have one entry per row; fit the dev head to the step\'s "own-rows"'
            )
    return part


def _latest(steps: Sequence[list[_Part]], rows: int) -> list[list[_Part]]:
    """The last ``rows`` rows of the steps."""
    kept: list[list[_Part]] = []
    missing = rows
    for step in reversed(steps):
        of_step: list[_Part] = []
        for part in reversed(step):
            start = len(part[_FEATURES]) - missing
            if missing > 0:
                cut = {key: t[start:].clone() for key, t in part.items()} if start > 0 else part
                of_step.insert(0, cut)
                missing -= len(cut[_FEATURES])
        if of_step:
            kept.insert(0, of_step)
    return kept


def _without(parts: Sequence[_Part], numbers: Tensor) -> list[_Part]:
    """Parts without the rows with these numbers; a part that does not know its own stays whole."""
    kept = []
    for part in parts:
        own = part.get(_NUMBERS)
        if own is None or not torch.isin(own, numbers).any():
            kept.append(part)
            continue
        left = (~torch.isin(own, numbers)).nonzero().flatten()
        if len(left):
            # Numbers are on the CPU, and targets may be.
            kept.append({key: t[to_device(left, t.device)] for key, t in part.items()})
    return kept


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix``, by the rest of their names."""
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


@dataclass(frozen=True)
class DevHeadSettings:
    """Options of the dev head.

    Attributes:
        kind: which rows it is fitted to: ``remembered`` of earlier steps or the step's
            ``own-rows``; ``end-task`` fits nothing and takes the end task's own head; or the name
            of a dev head that a plug-in brings.
        rows: number of rows that it is fitted to.
        fit: how it is fitted: ``adamw``, or the name of a dev head that a plug-in brings.
        iterations: iterations of AdamW.
        lr: learning rate of AdamW.
        weight_decay: weight decay of AdamW.
        average: β of the running mean of the dev gradient over steps; 0 for no mean.
        plugins: the plug-ins' dev heads that ``kind`` and ``fit`` name.
    """

    kind: str = "remembered"
    rows: int = ROWS
    fit: str = "adamw"
    iterations: int = 10
    lr: float = 1e-2
    weight_decay: float = 0.1
    average: float = 0.0
    plugins: Mapping[str, TargetEntry] = field(default_factory=dict)


class DevHeadFactory(Protocol):
    """What ``aang_register_dev_heads`` registers."""

    def __call__(
        self,
        settings: DevHeadSettings,
        passes: Passes,
        generator: torch.Generator,
        keep: Callable[[Tensor], Tensor],
    ) -> DevHead:
        """Make the dev head.

        Args:
            settings: the options. A dev head that chooses rows leaves the fit to `fitted_dev_head`.
            passes: passes through the body that all tasks share.
            generator: source of all random numbers.
            keep: selects the part of features ``[B, ...]`` that a head reads.
        """
        ...


def find_dev_heads(kind: str, fit: str, registry: Registry) -> dict[str, TargetEntry]:
    """The plug-ins' dev heads that ``--dev-head`` and ``--dev-head-fit`` name.

    Raises:
        UnknownNameError: no plug-in brings a dev head of that name; the message says what does.
        AmbiguousNameError: several do.
    """
    return {
        name: registry.dev_heads.find(name, known)
        for name, known in ((kind, _KINDS), (fit, _FITS))
        if name not in known
    }


def choose_dev_head(
    settings: DevHeadSettings,
    passes: Passes,
    generator: torch.Generator,
    keep: Callable[[Tensor], Tensor] = lambda features: features,
) -> DevHead:
    """Make the dev head that the options ask for; see `DevHeadFactory`."""
    head: DevHead
    if settings.kind == "end-task":
        head = EndTaskHead()
    elif settings.kind == "own-rows":
        head = fitted_dev_head(settings, passes, generator, keep)
    elif settings.kind == "remembered":
        fitted = fitted_dev_head(settings, passes, generator, keep)
        head = RememberingDevHead(fitted, settings.rows, keep)
    else:
        head = settings.plugins[settings.kind].load()(settings, passes, generator, keep)
    if settings.average:
        head.average = DevAverage(passes.body, settings.average)
    return head


def fitted_dev_head(
    settings: DevHeadSettings,
    passes: Passes,
    generator: torch.Generator,
    keep: Callable[[Tensor], Tensor] = lambda features: features,
) -> DevHead:
    """Make a dev head that fits whatever rows it is given; see `DevHeadFactory`."""
    if settings.fit != "adamw":
        made: DevHead = settings.plugins[settings.fit].load()(settings, passes, generator, keep)
        return made
    return FreshDevHead(
        generator,
        iterations=settings.iterations,
        lr=settings.lr,
        weight_decay=settings.weight_decay,
    )
