"""How close each objective is to the end task, before any training (AANG, section 4)."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from aang.assembly.assembly import Assembly, assemble
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.modeling.heads import EndTaskClassifier, LanguageModelHead
from aang.runs.before import untaught_heads
from aang.runs.computing import in_effect, settle_precision
from aang_plugin_dev_heads.logistic import LogisticDevHead
from torch import Tensor, nn

from aang_core.errors import ConfigError
from aang_core.gradients import (
    DevHead,
    FreshDevHead,
    RememberingDevHead,
)
from aang_core.gradients.passes import Passes, body_gradient
from aang_core.tasks.task import Batch, Task
from aang_core.training.rows import Draws
from aang_plugin_diagnose.theorem import Theorem, step_constant

Gradient = Mapping[nn.Parameter, Tensor]

_STEP = 1e-3
"""Length of the step that measures smoothness, as a part of the length of θ."""

_DEV = "dev"
"""Key of the dev rows in the draws; no task has this name."""


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over batches.

    Attributes:
        mean: the mean.
        std: the standard deviation; None for a single batch.
    """

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        std = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.mean(values), std)


@dataclass(frozen=True)
class ObjectiveDiagnosis:
    """The measurements of one objective, over the body's parameters.

    Attributes:
        name: the objective.
        rows: number of texts in its data.
        cosine: of g_k with the dev gradient v.
        norm: ‖g_k‖.
        distance: Δ̂_k = ‖g_k − g_E‖, which assumption A.1 bounds by Δ.
        smoothness: β̂_k, by how much the gradient changes over a short step along itself, divided
            by the step's length; None if it was not measured.
    """

    name: str
    rows: int
    cosine: Spread
    norm: Spread
    distance: Spread
    smoothness: Spread | None = None


@dataclass(frozen=True)
class Diagnosis:
    """A space compared with the end task, at the parameters that training would start from.

    Attributes:
        end_task: the same measurements of the end task itself; its distance is zero.
        objectives: those of the space, by rising Δ̂_k.
        batches: number of batches that the figures are means over.
        end_task_weight: λ_e that the weighter starts from.
        end_task_rows: N_e.
        auxiliary_rows: N_a, the texts of all objectives; a text counts once for each objective that
            reads it.
        theorem: the quantities of Theorem 4.1 and its bound; None if they were not measured.

    Examples:
        >>> from aang_plugin_diagnose import Diagnosis
        >>> from aang_plugin_diagnose.objectives import ObjectiveDiagnosis, Spread
        >>> one, zero = Spread(1.0, None), Spread(0.0, None)
        >>> end_task = ObjectiveDiagnosis("end-task", 100, cosine=one, norm=one, distance=zero)
        >>> diagnosis = Diagnosis(end_task, [], 1, 0.5, end_task_rows=100, auxiliary_rows=300)
        >>> diagnosis.total_rows, diagnosis.gamma
        (400, 2.0)
    """

    end_task: ObjectiveDiagnosis
    objectives: Sequence[ObjectiveDiagnosis]
    batches: int
    end_task_weight: float
    end_task_rows: int
    auxiliary_rows: int
    theorem: Theorem | None = None

    @property
    def total_rows(self) -> int:
        """N' = N_e + N_a (AANG, Theorem 4.1)."""
        return self.end_task_rows + self.auxiliary_rows

    @property
    def gamma(self) -> float:
        """γ = λ_e / r_e with r_e = N_e / N': the end task's weight over its share of the rows."""
        return self.end_task_weight * self.total_rows / self.end_task_rows

    def document(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            **asdict(self),
            "total_rows": self.total_rows,
            "gamma": self.gamma,
            "theorem": None if self.theorem is None else self.theorem.document(),
        }


def diagnose(
    config: TrainConfig,
    sources: Sources,
    *,
    device: torch.device,
    batches: int | None = None,
    bound: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Diagnosis:
    """Measure every objective against the end task, without training anything but heads.

    Gradients are measured at the start: the encoder as loaded, with dropout off. A randomly
    initialised head would make them meaningless, so each is fitted anew. The end task's head, which
    is the dev head too, is fitted to the ``--dev-head-rows`` rows before the measured ones, as with
    ``--dev-head remembered``; an objective's is fitted to the batch before. Language-model heads
    are pre-trained and stay as they are.

    Args:
        config: the training's options.
        sources: its data, objectives and encoder.
        device: where to compute.
        batches: number of batches of every objective to measure; None for one pass over the end
            task's training rows.
        bound: whether to measure the smoothness of every loss, which the bound of Theorem 4.1
            needs. It takes one more backward pass for each batch, and single precision.
        progress: called after each batch with the number of batches done and their total.
        say: called with sentences that the user should read before the measuring begins.

    Raises:
        ConfigError: the precision is fp16, or bf16 with ``bound``.
        AangError: another option or the data cannot be used.
    """
    if config.precision == "fp16":
        # Unlike a training step, nothing is repeated at a smaller loss scale here.
        raise ConfigError("--precision fp16 may overflow in a diagnosis; use bf16 or fp32")
    if bound:
        if config.precision == "bf16":
            raise ConfigError("--bound compares gradients that hardly differ; use --precision fp32")
        config = config.model_copy(update={"precision": "fp32"})
    torch.manual_seed(config.seed)
    assembly = assemble(sources)
    width = int(assembly.model.body.base.config.hidden_size)
    precision, reason = settle_precision(config.precision, device, width)
    config = config.model_copy(update={"precision": precision})
    heads = [task.head for task in assembly.auxiliaries]
    for told in (reason, untaught_heads(assembly, heads), _equal_views(assembly)):
        if told is not None:
            say(told)
    measuring = _Measuring(config, assembly, device, smoothness=bound)
    todo = batches or math.ceil(len(assembly.end_task) / config.batch_size)
    seen: list[Mapping[str, tuple[float, ...]]] = []
    for values in measuring.batches(todo):
        seen.append(values)
        if progress is not None:
            progress(len(seen), todo)

    def diagnosis(task: Task) -> ObjectiveDiagnosis:
        columns = zip(*(values[task.name] for values in seen), strict=True)
        return ObjectiveDiagnosis(task.name, len(task), *map(Spread.of, columns))

    found = [diagnosis(task) for task in assembly.auxiliaries]
    weights = assembly.weighter.weights()
    whole = Diagnosis(
        end_task=diagnosis(assembly.end_task),
        objectives=sorted(found, key=lambda o: o.distance.mean),
        batches=todo,
        end_task_weight=weights[assembly.end_task.name],
        end_task_rows=len(assembly.end_task),
        auxiliary_rows=sum(len(task) for task in assembly.auxiliaries),
    )
    return replace(whole, theorem=_theorem(whole, weights, config)) if bound else whole


def _equal_views(assembly: Assembly) -> str | None:
    """A sentence about objectives whose views only dropout tells apart; None if there are none."""
    names = [
        task.name
        for task in assembly.auxiliaries
        if isinstance(task, ObjectiveTask)
        and task.views > 1
        and task.factors["transform"] == "no-op"
    ]
    if not names:
        return None
    return (
        f"dropout is off, and without it the views of {', '.join(names)} are equal: measured is "
        "how they push texts apart, not how they pull views together"
    )


def _theorem(diagnosis: Diagnosis, weights: Mapping[str, float], config: TrainConfig) -> Theorem:
    """The theorem for f_a = Σ w_k f_k, whose Δ and β are at most Σ w_k Δ_k and Σ w_k β_k.

    Args:
        diagnosis: the measurements.
        weights: of the end task and the objectives, by name.
        config: the options of the training that the theorem is about.
    """
    objectives, end = diagnosis.objectives, diagnosis.end_task
    total = sum(weights[o.name] for o in objectives)

    def mean(measured: Callable[[ObjectiveDiagnosis], Spread | None]) -> float:
        spreads = [(o.name, measured(o)) for o in objectives]
        return sum(weights[name] / total * s.mean for name, s in spreads if s is not None)

    assert end.smoothness is not None
    return Theorem(
        distance=mean(lambda o: o.distance),
        lipschitz=max(o.norm.mean for o in (end, *objectives)),
        end_task_smoothness=end.smoothness.mean,
        auxiliary_smoothness=mean(lambda o: o.smoothness),
        end_task_rows=diagnosis.end_task_rows,
        auxiliary_rows=diagnosis.auxiliary_rows,
        steps=config.steps,
        step_constant=step_constant(config),
    )


def fresh_dev_head(config: TrainConfig, generator: torch.Generator) -> FreshDevHead:
    """The dev head that the options describe, fitted anew each time."""
    return FreshDevHead(
        generator,
        iterations=config.dev_head_steps,
        lr=config.dev_head_lr,
        weight_decay=config.dev_head_weight_decay,
    )


def fit_of_head(task: Task, config: TrainConfig, generator: torch.Generator) -> FreshDevHead | None:
    """The dev head's fit for a task; None if it has a pre-trained head or the end task's."""
    known = (LanguageModelHead, EndTaskClassifier)
    if any(isinstance(module, known) for module in task.head.modules()):
        return None
    return fresh_dev_head(config, generator)


class _Measuring:
    """Draws batches of every task and compares their gradients."""

    def __init__(
        self, config: TrainConfig, assembly: Assembly, device: torch.device, *, smoothness: bool
    ) -> None:
        self._config = config
        self._measures_smoothness = smoothness
        self._assembly = assembly
        self._generator = torch.Generator().manual_seed(config.seed)
        self._passes = Passes(assembly.model.body.to(device).eval(), in_effect(config.precision))
        tasks: list[Task] = [assembly.end_task, *assembly.auxiliaries]
        self._draws = Draws(
            {_DEV: assembly.meta, **{task.name: task for task in tasks}},
            generator=self._generator,
            device=device,
            at_once=config.micro_batch_size,
        )
        self._heads = {
            task.name: fit_of_head(task, config, self._generator) for task in assembly.auxiliaries
        }
        reads = assembly.end_task.head_reads
        fit: DevHead = fresh_dev_head(config, self._generator)
        if config.dev_head_fit == "logistic":
            fit = LogisticDevHead(reads)
        self._dev_head = RememberingDevHead(fit, config.dev_head_rows, reads)
        for task in tasks:
            task.head.to(device).eval()

    def batches(self, count: int) -> Iterator[Mapping[str, tuple[float, ...]]]:
        """Cosine, norm and distance by task, for one batch after the other; smoothness if asked."""
        end, tasks = self._assembly.end_task, self._assembly.auxiliaries
        before = {
            task.name: self._features(self._draw(task))
            for task in tasks
            if self._heads[task.name] is not None
        }
        rows = self._draws.rows(end.name, self._config.dev_head_rows)
        self._dev_head.observe(*self._features(rows))
        for _ in range(count):
            rows = self._draw(end)
            features = self._features(rows)
            of_end_task = self._dev_head.fit(end, *features)
            dev = self._draws.rows(_DEV, self._config.dev_batch_size)
            v = _Known.of(body_gradient(self._passes, end, of_end_task, dev))
            gradient = body_gradient(self._passes, end, of_end_task, rows)
            end_gradient = _Known.of(gradient)
            values = {
                end.name: (
                    *_compared(gradient, v, end_gradient),
                    *self._smoothness(end, of_end_task, rows, gradient),
                )
            }
            self._dev_head.observe(*features)
            for task in tasks:
                head = self._head(task, of_end_task, before)
                rows = self._draw(task)
                gradient = body_gradient(self._passes, task, head, rows)
                values[task.name] = (
                    *_compared(gradient, v, end_gradient),
                    *self._smoothness(task, head, rows, gradient),
                )
                if task.name in before:
                    before[task.name] = self._features(rows)
            yield values

    def _head(
        self,
        task: Task,
        of_end_task: nn.Module,
        before: Mapping[str, tuple[Sequence[Tensor], Sequence[Batch]]],
    ) -> nn.Module:
        if isinstance(task.head, EndTaskClassifier):
            # The end task's own head is untrained here; the fitted one is what training arrives at.
            return of_end_task
        fitted = self._heads[task.name]
        return task.head if fitted is None else fitted.fit(task, *before[task.name])

    def _smoothness(
        self, task: Task, head: nn.Module, rows: Sequence[Batch], gradient: Gradient
    ) -> list[float]:
        """β̂, if it is measured."""
        if not self._measures_smoothness:
            return []
        return [smoothness(gradient, lambda: body_gradient(self._passes, task, head, rows))]

    @torch.no_grad()
    def _features(self, rows: Sequence[Batch]) -> tuple[Sequence[Tensor], Sequence[Batch]]:
        """Features and batches that a head is fitted to."""
        return self._passes.dev_features([self._passes.features(batch) for batch in rows]), rows

    def _draw(self, task: Task) -> list[Batch]:
        return self._draws.rows(task.name, self._config.batch_size)


@dataclass(frozen=True)
class _Known:
    """A gradient that others are compared with, and its squared norm."""

    gradient: Gradient
    square: float

    @classmethod
    def of(cls, gradient: Gradient) -> "_Known":
        return cls(gradient, _dots(gradient)[0])


def smoothness(gradient: Gradient, again: Callable[[], Gradient]) -> float:
    """‖∇f(θ + s) − ∇f(θ)‖ / ‖s‖ for a short step s along the gradient; β is at least that.

    AANG, definition E.2.

    Args:
        gradient: ∇f(θ), by the parameters that f depends on. They are moved and restored.
        again: computes the gradient anew.
    """
    norm = math.sqrt(_dots(gradient)[0])
    if not norm:
        return 0.0
    before = {p: p.detach().clone() for p in gradient}
    length = _STEP * math.sqrt(_dots(before)[0])
    with torch.no_grad():
        for p, part in gradient.items():
            p.add_(part, alpha=length / norm)
    moved = again()
    with torch.no_grad():
        for p, value in before.items():
            p.copy_(value)
    change = {p: moved[p] - part for p, part in gradient.items()}
    return math.sqrt(_dots(change)[0]) / length


def _compared(gradient: Gradient, v: _Known, end: _Known) -> tuple[float, float, float]:
    """cos(g, v), ‖g‖ and ‖g − g_E‖; parameters that a loss does not reach have zero gradient."""
    square, with_v, with_end = _dots(gradient, v.gradient, end.gradient)
    length = math.sqrt(square * v.square)
    cosine = 0.0 if length == 0.0 else with_v / length
    apart = max(square - 2 * with_end + end.square, 0.0)
    return cosine, math.sqrt(square), math.sqrt(apart)


def _dots(gradient: Gradient, *others: Gradient) -> list[float]:
    """⟨g, g⟩, and ⟨g, o⟩ for each of the others, in double precision."""
    total = torch.zeros(1 + len(others), dtype=torch.float64)
    for parameter, part in gradient.items():
        mine = part.double().flatten()
        known = [other.get(parameter) for other in others]
        dots = [
            mine.new_zeros(()) if theirs is None else mine.dot(theirs.double().flatten())
            for theirs in known
        ]
        # Added in the same order, so that the distance of a gradient from itself is exactly zero.
        total = total.to(mine.device) + torch.stack([mine.dot(mine), *dots])
    return list(total.tolist())
