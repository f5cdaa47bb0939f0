"""The weighter ``diw``."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
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


class Diw(Weighter):
    """Discriminative Importance Weighting (αVIL, section 4.1, after Sivasankaran et al., 2017).

    A round is an epoch. Each task is first trained alone, without a weight, and the end task's dev
    score afterwards is the task's score. Then, from the same θ, all tasks are trained together with
    the weights w_t / Σ w, and the result is scored. If it beats the score of earlier rounds, the
    model keeps it. If not, every w_t moves by ``lr`` times the difference between its task's score
    and the joint score, the model is restored, and joint training starts again. After ``tries``
    without improvement the best of them is kept.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        lr: of the weights; 0.1 in the paper.
        tries: number of joint trainings in a round; 10 in the paper.
        fraction: ρ, the part of a task's rows that each training of a round uses.
        n: number of auxiliary tasks in a round, drawn anew each time; None for all of them.
        offload: keep updates on the CPU.

    Raises:
        ConfigError: an option is out of range.
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 0.1,
        tries: int = 10,
        fraction: float = 1.0,
        n: int | None = None,
        offload: bool = False,
    ) -> None:
        self._end_task = end_task.name
        self._lr = number_option("weighter option lr", lr, low=0)
        self._tries = whole_number_option("weighter option tries", tries)
        self._fraction = number_option(
            "weighter option fraction", fraction, low=0, high=1, above_low=True
        )
        self._sample_size = sample_size_option(n, auxiliaries)
        self._offload = flag_option("weighter option offload", offload)
        self._weights = TaskWeights(card.name for card in (end_task, *auxiliaries))
        self._best: float | None = None
        self._alone: dict[str, float] = {}
        self._joint: list[float] = []

    def round(self, bench: Workbench) -> None:
        """Score each task alone, then train together until the dev score improves.

        Raises:
            AangError: a dev score is not finite.
        """
        # In the last round of a run, the tasks and a joint training share the steps that are left.
        left = max(bench.steps_left, 2)
        tasks = [self._end_task, *bench.sample(self._sample_size)][: left - 1]
        most = left // (len(tasks) + 1)
        if self._best is None:
            self._best = bench.dev_score()
        restore = bench.snapshot()

        def trained(weights: Mapping[str, float]) -> Update:
            steps = max(min(most, bench.steps_left), 1)
            return bench.trial(
                weights, fraction=self._fraction, at_most=steps, offload=self._offload
            )

        self._alone = {}
        for task in tasks:
            self._alone[task] = self._score(bench, trained({task: 1.0}))
            restore()
        self._joint = []
        best_try: tuple[float, Update] | None = None
        for _ in range(self._tries):
            if best_try is not None and not bench.steps_left:
                break
            update = trained(self._weights.shares(tasks))
            score = self._score(bench, update)
            self._joint.append(score)
            if score > self._best:
                self._best = score
                return
            if best_try is None or score > best_try[0]:
                best_try = score, update
            restore()
            for task in tasks:
                self._weights.add(task, self._lr * (self._alone[task] - score))
        assert best_try is not None
        bench.apply([best_try[1]], [1.0])

    def _score(self, bench: Workbench, update: Update) -> float:
        """Apply ``update`` and return the dev score."""
        bench.apply([update], [1.0])
        return bench.dev_score()

    def weights(self) -> Mapping[str, float]:
        return self._weights.all_shares()

    def record(self) -> Mapping[str, Any]:
        return {
            "importance": self._weights.state_dict(),
            "dev_scores": {"best": self._best, "alone": dict(self._alone), "joint": [*self._joint]},
        }

    def state_dict(self) -> dict[str, Any]:
        return {"importance": self._weights.state_dict(), "best": self._best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._weights.load_state_dict(state["importance"])
        self._best = state["best"]
