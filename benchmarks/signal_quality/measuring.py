"""A training with pauses in which its signals are measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from aang.assembly.assembly import Assembly, assemble
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.runs.computing import in_effect
from aang.runs.training import build_trainer
from aang_plugin_dev_heads.logistic import LogisticDevHead
from aang_plugin_diagnose.objectives import fit_of_head, fresh_dev_head
from torch import Tensor, nn

from aang_core.errors import ConfigError
from aang_core.gradients import (
    DevAverage,
    DevHead,
    RememberingDevHead,
)
from aang_core.gradients.passes import Passes, body_gradient
from aang_core.tasks.task import Batch, Task
from aang_core.training.bench import TrainingBench
from aang_core.training.rows import Draws
from aang_core.training.trainer import Trainer
from benchmarks.signal_quality.calibrated import Calibrated
from benchmarks.signal_quality.cosines import ADAM, BEYOND, Gradient, Reference, Sample
from benchmarks.signal_quality.figures import (
    OWN_NOISE,
    OWN_SPREAD,
    ObjectiveQuality,
    SignalQuality,
)

_DEV = "dev"
"""Key of the dev rows among the draws; no task has this name."""

_CALIBRATED = "calibrated"

_FEWER, _MORE = 8, 4
"""Variants use this fraction of the dev head's rows, and this multiple of the dev rows."""

_DECAY = 0.9
"""Decay of running means without ``--dev-average``."""


@dataclass(frozen=True)
class QualityPlan:
    """When a training is measured.

    Attributes:
        steps: number of steps. The learning rate follows the schedule of the whole training.
        every: steps between measurements; the first comes when the dev head's rows have all been
            remembered.
        sample: number of objectives to measure each time, drawn anew; None for all.
        weighted: whether the weighter trains. Otherwise the end task is trained alone, and the
            randomly initialised heads of objectives are fitted when they are measured.
    """

    steps: int = 60
    every: int = 5
    sample: int | None = None
    weighted: bool = True


def measure_signal_quality(
    config: TrainConfig,
    sources: Sources,
    plan: QualityPlan,
    *,
    device: torch.device,
    progress: Callable[[int, int | None], None] | None = None,
) -> SignalQuality:
    """Train for some steps and measure every objective's signals on the way.

    The training is exactly the one that the options describe, since a measurement restores the
    state of everything that it draws from. Measured rows are the next ones of the end task's order,
    none of which has been remembered in the same pass, and separate rows of the objectives and of
    dev.

    Args:
        config: the training's options.
        sources: its data, objectives and encoder.
        plan: when to measure.
        device: where to compute.
        progress: called after each step with the number of steps done and their total.

    Raises:
        ConfigError: there would be no measurement, or the precision is fp16.
        AangError: the data, the model or another option cannot be used.
    """
    first = -(-config.dev_head_rows // config.batch_size)
    places = [step for step in range(first, plan.steps + 1) if (step - first) % plan.every == 0]
    if len(places) < 2:
        raise ConfigError(
            f"{plan.steps} steps are too few: the first measurement comes after {first}, when the "
            f"dev head's {config.dev_head_rows} rows are remembered, and the next {plan.every} "
            "later; raise --quality-steps, or lower --quality-every or --dev-head-rows"
        )
    if config.precision == "fp16":
        raise ConfigError("--precision fp16 may overflow; use bf16 or fp32")
    torch.manual_seed(config.seed)
    assembly = assemble(sources.with_options(dev_head="remembered"))
    trainer = build_trainer(assembly, device)
    # Measurements come between steps that ask for no signals.
    trainer.bench.remembers = True
    if sources.task.task_type.reads_every_token:
        sources.report.note(
            "there is no column logistic: a logistic regression needs one label a text, and this "
            "task labels words"
        )
    measuring = _Measuring(config, assembly, trainer, plan, device)
    measured = []
    while trainer.bench.steps < plan.steps:
        before = trainer.bench.steps
        _train(trainer, plan)
        # A round of some weighters has many steps.
        if any(before < place <= trainer.bench.steps for place in places):
            measuring.measure()
            measured.append(trainer.bench.steps)
        if progress is not None:
            progress(min(trainer.bench.steps, plan.steps), plan.steps)
    return measuring.found(measured)


def _train(trainer: Trainer, plan: QualityPlan) -> None:
    trainer.bench.begin_round()
    if plan.weighted:
        trainer.weighter.round(trainer.bench)
    else:
        trainer.bench.step({trainer.bench.end_task: 1.0}, frozenset())


class _Measuring:
    """Draws separate rows during a training, and collects their gradients' cosines."""

    def __init__(
        self,
        config: TrainConfig,
        assembly: Assembly,
        trainer: Trainer,
        plan: QualityPlan,
        device: torch.device,
    ) -> None:
        self._config = config
        self._assembly = assembly
        self._bench: TrainingBench = trainer.bench
        self._plan = plan
        self._passes = Passes(assembly.model.body, in_effect(config.precision))
        self._generator = torch.Generator().manual_seed(config.seed)
        self._draws = Draws(
            {_DEV: assembly.meta, **{task.name: task for task in assembly.auxiliaries}},
            generator=self._generator,
            device=device,
            at_once=config.micro_batch_size,
        )
        few, more = config.dev_head_rows // _FEWER or 1, _MORE * config.dev_batch_size
        self._few, self._more = few, more
        self._base = f"adamw-{config.dev_head_rows}"
        self._averaged = DevAverage(self._passes.body, self._decay)
        self._mean_of_end_task: dict[nn.Parameter, Tensor] = {}
        rows = config.dev_head_rows
        self._fits: dict[str, tuple[DevHead, int]] = {
            f"adamw-{few}": (fresh_dev_head(config, self._generator), few),
            self._base: (fresh_dev_head(config, self._generator), rows),
        }
        if not assembly.end_task.task_type.reads_every_token:
            logistic = LogisticDevHead(assembly.end_task.head_reads)
            self._fits[f"logistic-{rows}"] = (logistic, rows)
        # A training that weights objectives teaches their heads; otherwise new ones are fitted.
        self._heads = {
            task.name: None if plan.weighted else fit_of_head(task, config, self._generator)
            for task in assembly.auxiliaries
        }
        self._samples: dict[str, list[Sample]] = {}

    @property
    def _decay(self) -> float:
        return self._config.dev_average or _DECAY

    def measure(self) -> None:
        """Take one sample of the end task and of the drawn objectives."""
        size = self._config.batch_size
        with self._bench.aside() as draws:
            end = self._assembly.end_task
            rows = [draws.rows("end-task", size) for _ in range(2)]
            reference = self._reference([batch for batches in rows for batch in batches])
            pair = [body_gradient(self._passes, end, end.head, batches) for batches in rows]
            self._take(end, reference, pair)
            self._add_to_mean(pair)
            for task in self._drawn():
                head = self._head(task)
                pair = [
                    body_gradient(self._passes, task, head, self._draws.rows(task.name, size))
                    for _ in range(2)
                ]
                self._take(task, reference, pair)

    def found(self, measured: Sequence[int]) -> SignalQuality:
        """Everything that was measured."""
        end = self._assembly.end_task
        found = {
            name: ObjectiveQuality.of(name, samples, self._base)
            for name, samples in self._samples.items()
        }
        return SignalQuality(
            end_task=found[end.name],
            objectives=[
                found[task.name] for task in self._assembly.auxiliaries if task.name in found
            ],
            variants=self._variants(),
            base=self._base,
            steps=self._bench.steps,
            measured=measured,
        )

    def _variants(self) -> Mapping[str, str]:
        rows, dev = self._config.dev_head_rows, self._config.dev_batch_size
        adamw = "dev head fitted by AdamW to {} remembered rows, {} dev rows"
        calibrated = f"{self._base}, its logits over the temperature that suits {self._more} rows"
        fits = {
            f"adamw-{self._few}": adamw.format(self._few, dev),
            self._base: adamw.format(rows, dev),
            f"logistic-{rows}": f"penalised logistic regression on {rows} rows, {dev} dev rows",
        }
        return {
            **{name: meaning for name, meaning in fits.items() if name in self._fits},
            f"dev-{self._more}": adamw.format(rows, self._more),
            **({_CALIBRATED: calibrated} if self._calibrates else {}),
            "averaged": f"{self._base}, v averaged over measurements with decay {self._decay}",
            ADAM: f"{self._base}, of the step that Adam makes of the gradient",
            OWN_NOISE: f"{self._base}, over the square root of the gradient's reliability",
            OWN_SPREAD: f"{self._base}, mean over standard deviation",
            BEYOND: f"{self._base}, v without its part along a running mean of g_E",
        }

    def _reference(self, measured: Sequence[Batch]) -> Reference:
        end, dev_rows = self._assembly.end_task, self._config.dev_batch_size
        dev = self._draws.rows(_DEV, dev_rows)
        heads = {
            name: fit.fit(end, *self._memory.latest(rows, without=measured))
            for name, (fit, rows) in self._fits.items()
        }
        v = {name: body_gradient(self._passes, end, head, dev) for name, head in heads.items()}
        more = self._draws.rows(_DEV, self._more)
        v[f"dev-{self._more}"] = body_gradient(self._passes, end, heads[self._base], more)
        if self._calibrates:
            v[_CALIBRATED] = self._gradient_calibrated(heads[self._base], dev, more)
        self._averaged = self._averaged.with_step(v[self._base])
        v["averaged"] = self._averaged.mean()
        return Reference(
            v,
            self._base,
            self._moments(),
            self._bench.optimization.settings.betas[1],
            dict(self._mean_of_end_task),
        )

    @property
    def _calibrates(self) -> bool:
        """Whether the end task has logits whose confidence can be wrong; numbers have none."""
        return self._assembly.end_task.task_type.names_classes

    def _gradient_calibrated(
        self, head: nn.Module, dev: Sequence[Batch], others: Sequence[Batch]
    ) -> dict[nn.Parameter, Tensor]:
        """The dev gradient through a head that is calibrated on other dev rows."""
        end = self._assembly.end_task
        calibrated = Calibrated.of(end, head, self._features(others), others)
        return body_gradient(self._passes, end, calibrated, dev)

    @torch.no_grad()
    def _features(self, rows: Sequence[Batch]) -> list[Tensor]:
        """The body's features of rows, on which heads are fitted."""
        return self._passes.dev_features([self._passes.features(b) for b in rows])

    @property
    def _memory(self) -> RememberingDevHead:
        head = self._bench.dev_head
        assert isinstance(head, RememberingDevHead)
        return head

    def _moments(self) -> dict[nn.Parameter, Tensor]:
        """Adam's second moment, bias-corrected, of every parameter that it has updated."""
        optimizer = self._bench.optimization.optimizer
        body = set(self._passes.trained())
        moments = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state.get(parameter)
                if parameter in body and state:
                    corrected = 1 - group["betas"][1] ** float(state["step"])
                    moments[parameter] = state["exp_avg_sq"] / corrected
        return moments

    def _add_to_mean(self, pair: Sequence[Gradient]) -> None:
        """Add the end task's gradients to the mean that later measurements subtract from v."""
        for parameter in self._passes.trained():
            parts = [g[parameter] for g in pair if parameter in g]
            if parts:
                now = torch.stack(parts).sum(dim=0) / len(pair)
                mean = self._mean_of_end_task.get(parameter)
                self._mean_of_end_task[parameter] = (
                    now if mean is None else mean.lerp(now, 1 - self._decay)
                )

    def _drawn(self) -> Iterator[Task]:
        tasks = self._assembly.auxiliaries
        count = len(tasks) if self._plan.sample is None else self._plan.sample
        names = set(self._draws.some(tuple(task.name for task in tasks), count))
        yield from (task for task in tasks if task.name in names)

    def _take(self, task: Task, reference: Reference, pair: Sequence[Gradient]) -> None:
        self._samples.setdefault(task.name, []).append(Sample.of(reference, pair))

    def _head(self, task: Task) -> nn.Module:
        """The objective's head, or one fitted to other rows than the measured ones."""
        fit = self._heads[task.name]
        if fit is None:
            return task.head
        rows: list[Batch] = self._draws.rows(task.name, self._config.batch_size)
        return fit.fit(task, self._features(rows), rows)
