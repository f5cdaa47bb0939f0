"""The optimiser and its schedule, as the papers set them (AANG, appendix D)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_linear_schedule_with_warmup


@dataclass(frozen=True)
class OptimizerSettings:
    """AdamW with linear warm-up and decay.

    lr: of the body. head_lr: of every head. warmup: share of the steps over which the rate rises.
    max_grad_norm: the norm that the gradient of all parameters together is clipped to.
    """

    lr: float
    head_lr: float
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    warmup: float = 0.06
    max_grad_norm: float = 1.0


class Optimization:
    """One AdamW over body and heads, each parameter once, with its learning-rate schedule."""

    def __init__(
        self, body: nn.Module, heads: Iterable[nn.Module], settings: OptimizerSettings, steps: int
    ) -> None:
        self.settings = settings
        body_parameters = dict.fromkeys(p for p in body.parameters() if p.requires_grad)
        head_parameters = dict.fromkeys(
            p
            for head in heads
            for p in head.parameters()
            if p.requires_grad and p not in body_parameters
        )
        self.parameters = [*body_parameters, *head_parameters]
        self.optimizer = AdamW(
            [
                *_groups(list(body_parameters), settings.lr, settings.weight_decay),
                *_groups(list(head_parameters), settings.head_lr, settings.weight_decay),
            ],
            betas=settings.betas,
            fused=True,
        )
        self.schedule: LRScheduler = get_linear_schedule_with_warmup(
            self.optimizer, round(settings.warmup * steps), steps
        )

    def step(self) -> None:
        """Clip, update, advance the schedule and drop the gradients."""
        nn.utils.clip_grad_norm_(self.parameters, self.settings.max_grad_norm, foreach=True)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)


def _groups(
    parameters: Sequence[nn.Parameter], lr: float, weight_decay: float
) -> list[dict[str, object]]:
    """Matrices decay; biases and gains, which have one dimension, do not."""
    groups: list[dict[str, object]] = [
        {
            "params": [p for p in parameters if p.dim() > 1],
            "lr": lr,
            "weight_decay": weight_decay,
        },
        {"params": [p for p in parameters if p.dim() <= 1], "lr": lr, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
