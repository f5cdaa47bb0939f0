"""The weighter ``alpha-vil``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    AangError,
    TaskCard,
    Update,
    Weighter,
    Workbench,
    flag_option,
    number_option,
    sample_size_option,
    whole_number_option,
)
from aang_plugin_alphavil.task_weights import TaskWeights


class AlphaVil(Weighter):
    """α-Variable Importance Learning (αVIL, section 3, Algorithm 1). A round is an epoch.

    From the same θ every task t is trained alone on a part of its rows with the loss weight w_t / Σ
    w, which gives δ_t. Then s steps of SGD with momentum on the α_t, all starting at 1, lower the
    end task's dev loss at θ + Σ α_t δ_t. Finally θ ← θ + Σ α_t δ_t and w_t ← max(w_t + (α_t − 1),
    1e-6).

    Where the model is trained by AdamW, as in the paper's experiments on language, w_t / Σ w is
    bookkeeping: AdamW divides a gradient by its own size, so a tenfold weight changes δ_t only
    through ε, by far less than α does. Under SGD δ_t is proportional to the weight, unless its
    gradients are clipped.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        tuning_steps: s; each costs a forward and a backward pass over ``dev_batches``.
        lr: of SGD on the α_t; the paper has 0.005 for MultiMNIST and 0.001 for language.
        momentum: of SGD on the α_t; 0.5 in the paper.
        fraction: ρ, the part of a task's rows that a round trains on; 1 for MultiMNIST, 0.25 for
            language.
        n: number of auxiliary tasks in a round, drawn anew each time; None for all of them, as in
            the paper. A space of dozens of objectives needs a few at a time.
        offload: keep the δ_t on the CPU; each is as large as the model.
        dev_batches: number of dev batches that a tuning step uses, the next ones each time; None
            for the whole dev set, as in Algorithm 1.

    Raises:
        ConfigError: an option is out of range.
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        tuning_steps: int = 10,
        lr: float = 0.005,
        momentum: float = 0.5,
        fraction: float = 1.0,
        n: int | None = None,
        offload: bool = False,
        dev_batches: int | None = None,
    ) -> None:
        self._end_task = end_task.name
        self._tuning_steps = whole_number_option(
            "weighter option tuning_steps", tuning_steps, low=0
        )
        self._dev_batches = dev_batches
        if dev_batches is not None:
            self._dev_batches = whole_number_option("weighter option dev_batches", dev_batches)
        self._lr = number_option("weighter option lr", lr, low=0)
        self._momentum = number_option(
            "weighter option momentum", momentum, low=0, high=1, below_high=True
        )
        self._fraction = number_option(
            "weighter option fraction", fraction, low=0, high=1, above_low=True
        )
        self._sample_size = sample_size_option(n, auxiliaries)
        self._offload = flag_option("weighter option offload", offload)
        self._weights = TaskWeights(card.name for card in (end_task, *auxiliaries))
        self._alpha: dict[str, float] = {}
        self._dev_losses: list[float] = []

    def round(self, bench: Workbench) -> None:
        """Collect the δ_t, tune α, update the model and the weights.

        Raises:
            AangError: the dev loss or its gradient is not finite; no weight has changed.
        """
        # In the last round of a run, the tasks share the steps that are left.
        left = max(bench.steps_left, 1)
        tasks = [self._end_task, *bench.sample(self._sample_size)][:left]
        most = left // len(tasks)
        updates = [
            bench.trial({task: share}, fraction=self._fraction, at_most=most, offload=self._offload)
            for task, share in self._weights.shares(tasks).items()
        ]
        alpha = self._tuned(bench, updates)
        bench.apply(updates, alpha)
        for task, value in zip(tasks, alpha, strict=True):
            self._weights.add(task, value - 1)
        self._alpha = dict(zip(tasks, alpha, strict=True))

    def _tuned(self, bench: Workbench, updates: Sequence[Update]) -> list[float]:
        """Lower the dev loss over α by s steps of SGD."""
        alpha = [1.0] * len(updates)
        velocity = [0.0] * len(updates)
        self._dev_losses = []
        for _ in range(self._tuning_steps):
            loss = bench.dev_loss(updates, alpha, batches=self._dev_batches)
            if not all(map(math.isfinite, (loss.value, *loss.gradient))):
                raise AangError(
                    f"the dev loss along the tasks' updates is not finite ({loss.value}): training "
                    "has diverged; lower the learning rate of the model or of alpha-vil"
                )
            self._dev_losses.append(loss.value)
            velocity = [
                self._momentum * v + g for v, g in zip(velocity, loss.gradient, strict=True)
            ]
            alpha = [a - self._lr * v for a, v in zip(alpha, velocity, strict=True)]
        return alpha

    def weights(self) -> Mapping[str, float]:
        return self._weights.all_shares()

    def record(self) -> Mapping[str, Any]:
        return {
            "alpha": dict(self._alpha),
            "importance": self._weights.state_dict(),
            "dev_losses": list(self._dev_losses),
        }

    def state_dict(self) -> dict[str, Any]:
        return {"importance": self._weights.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._weights.load_state_dict(state["importance"])
