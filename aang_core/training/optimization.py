"""Optimiser and learning-rate schedule: AdamW, linear warm-up and decay (AANG, appendix D).

SGD and a constant rate are there for αVIL, which trains on images with them (section 4.1).
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from aang_core.errors import ConfigError
from aang_core.gradients.passes import trained
from aang_core.plugins.primitive import number_option

_OF_SCHEDULE = ("last_epoch", "_step_count", "base_lrs", "_last_lr")


@dataclass(frozen=True)
class OptimizerSettings:
    """Optimiser, schedule and clipping.

    Attributes:
        lr: learning rate of the body.
        head_lr: learning rate of every head.
        weight_decay: of the body; only matrices decay.
        betas: of AdamW.
        eps: of AdamW.
        warmup: share of the steps over which the learning rate rises.
        max_grad_norm: norm that the gradient over all parameters is clipped to.
        optimizer: ``"adamw"``, or ``"sgd"`` with ``momentum``.
        momentum: of SGD; AdamW ignores it.
        schedule: after the warm-up, ``"linear"`` lets the rate fall to zero and ``"constant"``
            keeps it.
        head_weight_decay: of every head; None for the body's.
        clip_apart: clip the body's gradient and the heads' gradient to ``max_grad_norm``
            separately, as AANG's code does, so that heads with large gradients do not shorten the
            body's step.

    Raises:
        ConfigError: a number is out of range.

    Examples:
        >>> from aang_core import OptimizerSettings
        >>> settings = OptimizerSettings(lr=1e-4, head_lr=1e-3, schedule="constant")
        >>> settings.head_lr, settings.weight_decay
        (0.001, 0.01)
    """

    lr: float
    head_lr: float
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    warmup: float = 0.06
    max_grad_norm: float = 1.0
    optimizer: Literal["adamw", "sgd"] = "adamw"
    momentum: float = 0.9
    schedule: Literal["linear", "constant"] = "linear"
    head_weight_decay: float | None = None
    clip_apart: bool = False

    def __post_init__(self) -> None:
        if not self.max_grad_norm > 0:  # infinity means no clipping
            raise ConfigError(f"max_grad_norm is {self.max_grad_norm}; give a number above 0")
        for name in ("lr", "head_lr", "eps"):
            number_option(name, getattr(self, name), low=0, above_low=True)
        for name in ("weight_decay", "head_weight_decay"):
            if getattr(self, name) is not None:
                number_option(name, getattr(self, name), low=0)
        for name in ("warmup", "momentum"):
            number_option(name, getattr(self, name), low=0, high=1, below_high=True)


class Optimization:
    """One optimiser over body and heads, each parameter once, with its learning-rate schedule.

    Args:
        body: the module that all tasks share.
        heads: the heads of all tasks.
        settings: optimiser, schedule and clipping.
        steps: steps of the run.
        share: share of the training that is over, for a run whose number of steps is not known in
            advance; the learning rate then follows it instead of the steps.

    Attributes:
        parameters: every trained parameter, once.
        of_body: those of the body.
        optimizer: torch's optimiser.
    """

    def __init__(
        self,
        body: nn.Module,
        heads: Iterable[nn.Module],
        settings: OptimizerSettings,
        steps: int,
        share: Callable[[], float] | None = None,
    ) -> None:
        self.settings = settings
        self.steps = steps
        self.of_body = trained(body)
        of_heads = trained(body, *heads)[len(self.of_body) :]
        decay = settings.head_weight_decay
        groups = [
            *_groups(self.of_body, settings.lr, settings.weight_decay),
            *_groups(of_heads, settings.head_lr, settings.weight_decay if decay is None else decay),
        ]
        self.parameters = [p for group in groups for p in group["params"]]
        # All together, or the body's and the heads' apart.
        inside = set(self.of_body)
        apart = [[p for p in self.parameters if (p in inside) == own] for own in (True, False)]
        self._parts = [p for p in apart if p] if settings.clip_apart else [self.parameters]
        self.optimizer = _optimizer(groups, settings)

        def timed(step: int) -> float:
            assert share is not None
            return _factor(share(), settings)

        self._warmup = round(settings.warmup * steps)
        self.schedule = LambdaLR(self.optimizer, self._factor_at if share is None else timed)

    def trial(self, body: nn.Module, heads: Iterable[nn.Module]) -> "Optimization":
        """A new optimiser for a trial over body and heads, at the current learning rates.

        It has the run's settings and none of the state of the run's optimiser. The warm-up starts
        at zero: with it, the trials of the first round would learn nothing, so it is left out.
        """
        factor = self.schedule.lr_lambdas[0](max(self.schedule.last_epoch, self._warmup))
        settings = replace(
            self.settings,
            lr=self.settings.lr * factor,
            head_lr=self.settings.head_lr * factor,
            warmup=0.0,
            schedule="constant",
        )
        return Optimization(body, heads, settings, steps=1)

    def load_schedule(self, state: Mapping[str, Any]) -> None:
        """Restore the schedule, and with it the learning rates.

        Args:
            state: what the schedule's ``state_dict`` returned.
        """
        # Only these: torch would take over any attribute that the state names.
        restored = {name: state[name] for name in _OF_SCHEDULE}
        self.schedule.load_state_dict(self.schedule.state_dict() | restored)
        for group, rate in zip(self.optimizer.param_groups, restored["_last_lr"], strict=True):
            group["lr"] = rate

    def catch_up(self, steps: int) -> None:
        """Advance the schedule to ``steps`` steps of the run."""
        with warnings.catch_warnings():
            # torch warns if a schedule is ahead of its optimiser; trials have their own optimiser.
            warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")
            if self.schedule.last_epoch < steps:
                # The rates depend only on the step, so those between need not be computed.
                self.schedule._step_count += steps - self.schedule.last_epoch - 1
                self.schedule.last_epoch = steps - 1
                self.schedule.step()

    def _factor_at(self, step: int) -> float:
        """The factor on every learning rate after ``step`` steps."""
        if step < self._warmup:
            return step / self._warmup
        if self.settings.schedule == "constant":
            return 1.0
        return max(0.0, (self.steps - step) / max(1, self.steps - self._warmup))

    def clip(self) -> Tensor:
        """Clip the gradient and return its norm before clipping, over all parameters; a scalar."""
        norms = [
            nn.utils.clip_grad_norm_(part, self.settings.max_grad_norm, foreach=True)
            for part in self._parts
        ]
        # The norm of a part without gradients is on the CPU.
        device = self.parameters[0].device
        return torch.stack([norm.to(device) for norm in norms]).norm() if norms[1:] else norms[0]

    def norm(self) -> Tensor:
        """The norm of the gradient over all parameters, a scalar; does not clip."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return nn.utils.get_total_norm(gradients, foreach=True)

    def update(self) -> None:
        """Update the parameters, advance the schedule and drop the gradients."""
        self.optimizer.step()
        self.schedule.step()
        self.drop()

    def drop(self) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad(set_to_none=True)


def _factor(share: float, settings: OptimizerSettings) -> float:
    """The factor on every learning rate after a share of a training of unknown length.

    It starts at 0.01, because at zero the first step would learn nothing.
    """
    warmup = settings.warmup
    if share < warmup:
        return max(0.01, share / warmup)
    return 1.0 if settings.schedule == "constant" else (1 - share) / (1 - warmup)


def _optimizer(groups: list[dict[str, Any]], settings: OptimizerSettings) -> Optimizer:
    if settings.optimizer == "sgd":
        return SGD(groups, momentum=settings.momentum)
    return AdamW(groups, betas=settings.betas, eps=settings.eps, fused=True)


def _groups(
    parameters: Sequence[nn.Parameter], lr: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Matrices decay; biases and gains, which have one dimension, do not."""
    groups: list[dict[str, Any]] = [
        {
            "params": [p for p in parameters if p.dim() > 1],
            "lr": lr,
            "weight_decay": weight_decay,
        },
        {"params": [p for p in parameters if p.dim() <= 1], "lr": lr, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
