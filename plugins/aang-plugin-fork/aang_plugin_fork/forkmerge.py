"""The weighter ``forkmerge``."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    TaskCard,
    Update,
    Weighter,
    Workbench,
    flag_option,
    restored_by_task,
    sample_size_option,
    whole_number_option,
)


class ForkMerge(Weighter):
    """Fork the model into branches, train each with other tasks, and merge them by dev score.

    ForkMerge (Jiang et al., NeurIPS 2023), section 4 and Algorithm 1. A round trains one branch on
    the end task alone and one on the end task and each auxiliary task k, all from the same θ and
    for Δt steps. The merged model is Σ_b Λ_b θ_b, with the Λ in the simplex that has the best dev
    score. With one auxiliary task, Λ is searched on a line. With more, the search is greedy, as in
    Algorithm 3 (appendix A.2): it starts from the best branch and adds the others in the order of
    their scores, each with the share that scores best. Algorithm 3 adds a branch with at most the
    mean weight of those before; here every share is tried.

    A branch b has the loss ½ L_E + ½ L_k, which has the direction of the paper's L_E + L_k. Each
    branch starts with a fresh optimiser.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        steps: Δt, the optimiser steps of a branch; each counts as a step of the run.
        shares: number of equal parts that the shares of a merge are multiples of; 5 tries 0, 0.2,
            …, 1.
        n: number of auxiliary tasks with a branch in a round, drawn anew each time; None for all
            of them. Each branch keeps an update as large as the model in memory.
        dev_rows: number of dev rows that the scores are measured on; None for all.
        offload: keep updates on the CPU.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_testing import RecordingWorkbench
        >>> from aang_plugin_fork.forkmerge import ForkMerge
        >>> bench = RecordingWorkbench("end", ["a"])
        >>> ForkMerge(TaskCard("end"), [TaskCard("a")], steps=7).round(bench)
        >>> bench.trials, bench.trial_steps
        ([{'end': 1.0}, {'end': 0.5, 'a': 0.5}], [7, 7])
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        steps: int = 10,
        shares: int = 5,
        n: int | None = 3,
        dev_rows: int | None = None,
        offload: bool = False,
    ) -> None:
        self._end_task = end_task.name
        self._names = [end_task.name, *(card.name for card in auxiliaries)]
        self._steps = whole_number_option("weighter option steps", steps)
        self._parts = whole_number_option("weighter option shares", shares)
        self._sample_size = sample_size_option(n, auxiliaries)
        self._dev_rows = dev_rows
        if dev_rows is not None:
            self._dev_rows = whole_number_option("weighter option dev_rows", dev_rows)
        self._offload = flag_option("weighter option offload", offload)
        self._weights = dict.fromkeys(self._names, 1 / len(self._names))
        self._last: dict[str, Any] = {}

    def round(self, bench: Workbench) -> None:
        """Fork, train and merge.

        Raises:
            AangError: a dev score is not finite.
        """
        # In the last round of a run, the branches share the steps that are left.
        left = max(bench.steps_left, 1)
        sampled = bench.sample(self._sample_size)[: left - 1]
        branches: list[dict[str, float]] = [{self._end_task: 1.0}]
        branches += [{self._end_task: 0.5, name: 0.5} for name in sampled]
        steps = min(self._steps, left // len(branches))
        updates = [bench.trial(b, steps=steps, offload=self._offload) for b in branches]
        merge = Merge(bench, updates, self._parts, self._dev_rows)
        shares = merge.search()
        bench.apply(updates, shares)
        self._weights = dict.fromkeys(self._names, 0.0)
        for share, branch in zip(shares, branches, strict=True):
            for name, coefficient in branch.items():
                self._weights[name] += share * coefficient
        self._last = {
            "shares": dict(zip([self._end_task, *sampled], shares, strict=True)),
            "dev_scores": dict(zip([self._end_task, *sampled], merge.alone, strict=True)),
        }

    def weights(self) -> Mapping[str, float]:
        """The loss weights of the last merge: Σ_b Λ_b times those of branch b."""
        return dict(self._weights)

    def record(self) -> Mapping[str, Any]:
        return dict(self._last)

    def state_dict(self) -> dict[str, Any]:
        return {"weights": dict(self._weights)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._weights = restored_by_task(state["weights"], self._names)


class Merge:
    """The search for the shares of branches with the best dev score.

    Args:
        bench: the workbench, at the point where the branches began.
        updates: the update of each branch.
        parts: number of equal parts that shares are multiples of.
        rows: number of dev rows to score; None for all.

    Attributes:
        alone: the score of each branch.
    """

    def __init__(
        self, bench: Workbench, updates: Sequence[Update], parts: int, rows: int | None
    ) -> None:
        self._bench = bench
        self._updates = updates
        self._parts = parts
        self._rows = rows
        self._restore = bench.snapshot()
        n = len(updates)
        self.alone = [self._score([float(b == a) for b in range(n)]) for a in range(n)]

    def search(self) -> list[float]:
        """The shares of the branches; they sum to one, and an equal score changes nothing."""
        order = sorted(range(len(self.alone)), key=lambda branch: -self.alone[branch])
        shares = [float(branch == order[0]) for branch in range(len(order))]
        best = self.alone[order[0]]
        for branch in order[1:]:
            tries = [_mixed(shares, branch, part / self._parts) for part in range(1, self._parts)]
            for tried in tries:
                score = self._score(tried)
                if score > best:
                    best, shares = score, tried
        return shares

    def _score(self, shares: Sequence[float]) -> float:
        """The dev score at the merge with these shares; the model is restored."""
        self._bench.apply(self._updates, shares)
        try:
            return self._bench.dev_score(self._rows)
        finally:
            self._restore()


def _mixed(shares: Sequence[float], branch: int, share: float) -> list[float]:
    """The shares if ``branch`` gets ``share``, and the others what it leaves."""
    mixed = [(1 - share) * s for s in shares]
    mixed[branch] = share
    return mixed
