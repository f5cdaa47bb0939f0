"""The weighter ``tapweight``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    AangError,
    TaskCard,
    Weighter,
    Workbench,
    flag_option,
    number_option,
    restored_by_task,
    sample_size_option,
    softmax,
    whole_number_option,
)


class TapWeight(Weighter):
    """Weigh objectives by the dev loss that fine-tuning after them reaches.

    TapWeight (Zhang et al., TMLR 2025), section 3.2, three nested problems: (1) pre-training, θ*(λ)
    = argmin_θ Σ_k λ_k L_k(θ); (2) fine-tuning with a proximal term, ω*(λ) = argmin_ω L_E(ω) + γ ‖ω
    − θ*(λ)‖²; (3) min_λ L_E^dev(ω*(λ)), with λ on the simplex. Section 3.3 solves them by descent
    on λ through the derivatives of the inner solutions.

    A round is one step of each. (1) From θ, each objective is trained alone for some steps, which
    gives δ_k and θ* = θ + Σ λ_k δ_k. (2) From θ* the end task is trained for some steps, which
    gives ω = θ* + δ_E. (3) ∂L_dev/∂λ_k = ⟨∇L_dev(ω), δ_k⟩, and the logits of λ take a step of
    gradient descent. The model continues from ω. Two things differ from the paper: θ* is linear in
    λ, where the paper differentiates an argmin; and ∂ω*/∂θ* is taken for the identity, which it is
    for a strong proximal term, where the paper solves a linear system with second derivatives.

    With a single objective λ = 1, and rounds only pre-train and fine-tune in turns.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        lr: step size of the logits of λ, in units of the largest derivative of the round: the
            logit of the objective it belongs to moves by about lr.
        pretraining_steps: optimiser steps of each δ_k; each counts as a step of the run.
        fine_tuning_steps: optimiser steps of δ_E.
        n: number of objectives of a round, drawn anew each time; λ is then normalised over them.
            None for all of them, as in the paper. Each keeps an update as large as the model in
            memory.
        dev_batches: number of dev batches of the derivative; None for the whole dev set.
        offload: keep updates on the CPU.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_testing import RecordingWorkbench
        >>> from aang_plugin_fork.tapweight import TapWeight
        >>> bench = RecordingWorkbench("end", ["a", "b"])
        >>> TapWeight(TaskCard("end"), [TaskCard("a"), TaskCard("b")]).round(bench)
        >>> bench.trials, bench.trial_steps
        ([{'a': 1.0}, {'b': 1.0}, {'end': 1.0}], [5, 5, 10])
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 0.5,
        pretraining_steps: int = 5,
        fine_tuning_steps: int = 10,
        n: int | None = 3,
        dev_batches: int | None = None,
        offload: bool = False,
    ) -> None:
        self._end_task = end_task.name
        self._logits = {card.name: 0.0 for card in auxiliaries}
        self._lr = number_option("weighter option lr", lr, low=0)
        self._before = whole_number_option("weighter option pretraining_steps", pretraining_steps)
        self._after = whole_number_option("weighter option fine_tuning_steps", fine_tuning_steps)
        self._sample_size = sample_size_option(n, auxiliaries)
        self._dev_batches = dev_batches
        if dev_batches is not None:
            self._dev_batches = whole_number_option("weighter option dev_batches", dev_batches)
        self._offload = flag_option("weighter option offload", offload)
        self._last: dict[str, Any] = {}

    def round(self, bench: Workbench) -> None:
        """Pre-train, fine-tune, and move λ.

        Raises:
            AangError: the dev loss or its gradient is not finite; no weight has changed.
        """
        # In the last round of a run, the trainings share the steps that are left.
        left = max(bench.steps_left, 1)
        sampled = bench.sample(self._sample_size)[: left - 1]
        weights = softmax({name: self._logits[name] for name in sampled})
        share = min(1.0, left / (len(sampled) * self._before + self._after))
        before = max(1, int(share * self._before))
        after = min(self._after, left - len(sampled) * before)
        deltas = [bench.trial({name: 1.0}, steps=before, offload=self._offload) for name in sampled]
        shares = [weights[name] for name in sampled]
        restore = bench.snapshot()
        bench.apply(deltas, shares)
        fine_tuned = bench.trial({self._end_task: 1.0}, steps=after, offload=self._offload)
        restore()
        updates, point = [*deltas, fine_tuned], [*shares, 1.0]
        dev = bench.dev_loss(updates, point, batches=self._dev_batches)
        if not all(map(math.isfinite, (dev.value, *dev.gradient))):
            raise AangError(
                f"the dev loss after fine-tuning is not finite ({dev.value}): training has "
                "diverged; lower the learning rate of the model"
            )
        self._learn(dict(zip(sampled, dev.gradient, strict=False)), weights)
        bench.apply(updates, point)
        self._last = {"dev_loss": dev.value, "tried": weights}

    def _learn(self, slopes: Mapping[str, float], weights: Mapping[str, float]) -> None:
        """Descend on the logits: λ_k (∂_k − Σ_j λ_j ∂_j), in units of the largest of them."""
        mean = math.fsum(weights[name] * slope for name, slope in slopes.items())
        steps = {name: weights[name] * (slope - mean) for name, slope in slopes.items()}
        largest = max(map(abs, steps.values()), default=0.0)
        if largest == 0:
            return
        for name, step in steps.items():
            self._logits[name] -= self._lr * step / largest

    def weights(self) -> Mapping[str, float]:
        """Shares of the steps of a round: the end task's, and those of the others times λ."""
        if not self._logits:
            return {self._end_task: 1.0}
        own = self._after / (self._before + self._after)
        return {
            self._end_task: own,
            **{name: (1 - own) * weight for name, weight in softmax(self._logits).items()},
        }

    def record(self) -> Mapping[str, Any]:
        return {"logits": dict(self._logits), **self._last}

    def state_dict(self) -> dict[str, Any]:
        return {"logits": dict(self._logits)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._logits = restored_by_task(state["logits"], self._logits)
