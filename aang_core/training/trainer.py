"""The trainer: rounds of a weighter, evaluation, early stopping, best model."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from aang_core.errors import NumericalError
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.weighting import Weighter
from aang_core.tasks.workbench import StepSignals
from aang_core.training.bench import TrainingBench
from aang_core.training.numbers import LossMeans
from aang_core.training.rows import separate_dropout
from aang_core.turns import let_others_load


@dataclass(frozen=True)
class Schedule:
    """How long to train.

    Attributes:
        steps: budget of optimiser steps, which learning rates and weighters plan with.
        eval_every: steps between evaluations on dev.
        patience: evaluations without a better dev score after which training stops.
        metric: the dev score used for early stopping and model selection.
        keep_best: whether to restore the best state of body and end-task head at the end.
        stop_after: end with the round that reaches this many of the steps; None trains all.
    """

    steps: int
    eval_every: int
    patience: int
    metric: str
    keep_best: bool = True
    stop_after: int | None = None

    @property
    def last_step(self) -> int:
        """Steps after which training ends at the latest."""
        return self.steps if self.stop_after is None else self.stop_after


class Clock:
    """Seconds that one training has taken, over all interruptions.

    The time changes only when `look` is called, so everything that reads it during a step sees the
    same value.

    Args:
        limit: seconds after which training ends; None for a training limited by steps.

    Attributes:
        seconds: time of training as of the last `look`.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.seconds = 0.0
        self._began = time.perf_counter()

    def start(self) -> None:
        """Continue counting from ``seconds``."""
        self._began = time.perf_counter() - self.seconds

    def look(self, processes: Processes = ALONE) -> None:
        """Read the time; with a limit, all processes agree on it.

        Args:
            processes: the processes that share the training.
        """
        now = time.perf_counter() - self._began
        self.seconds = now if self.limit is None else processes.agree([now])[0]

    def state_dict(self) -> dict[str, float]:
        """The seconds so far."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore the seconds so far."""
        self.seconds = state["seconds"]

    @property
    def spent(self) -> bool:
        """Whether the time limit is reached."""
        return self.limit is not None and self.seconds >= self.limit

    @property
    def share(self) -> float:
        """Share of the time limit that has passed, from 0 to 1; 0 without a limit."""
        return 0.0 if self.limit is None else min(1.0, self.seconds / self.limit)


@dataclass
class Progress:
    """The best model so far.

    Attributes:
        best_step: step of the best evaluation.
        best_score: its dev score; -inf before the first evaluation.
        evaluations_since_best: evaluations since then.
        best_state: tensors of the selected modules at that step, on the CPU, without frozen ones.
    """

    best_step: int = 0
    best_score: float = float("-inf")
    evaluations_since_best: int = 0
    best_state: dict[str, Tensor] = field(default_factory=dict)

    def state_dict(self) -> dict[str, Any]:
        """All attributes."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore saved attributes."""
        vars(self).update({name: state[name] for name in vars(self)})

    @property
    def evaluated(self) -> bool:
        """Whether the model has been evaluated at least once."""
        return self.best_score > float("-inf")


class Observer(Protocol):
    """Watches training, as a run folder and a progress bar do.

    Examples:
        >>> from aang_core import Observer
        >>> class Counter:
        ...     def after_round(self, step, record):
        ...         print("step", step)
        ...
        ...     def after_evaluation(self, step, dev, best, losses): ...
        >>> counter: Observer = Counter()
        >>> counter.after_round(1, {})
        step 1
    """

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Called after every round.

        Args:
            step: steps so far.
            record: the line for ``weights.jsonl``.
        """
        ...

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Called after every evaluation.

        Args:
            step: steps so far.
            dev: scores on the dev set, and the end task's loss there.
            best: whether they are the best so far.
            losses: mean training loss of each task over the steps since the last evaluation; empty
                before the first step.
        """
        ...


class Boundary(Protocol):
    """What happens between two rounds, such as saving by a `Checkpointer`."""

    def reached(self, trainer: "Trainer") -> None:
        """Called between any two rounds, where a checkpoint can be saved."""
        ...


@dataclass(frozen=True)
class Watching:
    """Whom a trainer notifies, and what may end it early.

    Attributes:
        observers: notified after rounds and evaluations.
        boundary: called between two rounds.
        clock: ends training if it has a limit.
    """

    observers: Sequence[Observer] = ()
    boundary: Boundary | None = None
    clock: Clock = field(default_factory=Clock)


class Trainer:
    """Calls ``weighter.round`` until the steps or the time run out or dev stops improving.

    Args:
        bench: the workbench that the weighter trains with.
        weighter: the weighter.
        schedule: steps and evaluations.
        evaluate: returns the dev scores of the current model.
        seed: seed of the training; every process has its own dropout.
        watching: whom to notify, and what may end training.
    """

    def __init__(
        self,
        bench: TrainingBench,
        weighter: Weighter,
        schedule: Schedule,
        *,
        evaluate: Callable[[], Mapping[str, float]],
        seed: int,
        watching: Watching,
    ) -> None:
        self.bench = bench
        self.clock = watching.clock
        self.weighter = weighter
        self.schedule = schedule
        self.progress = Progress()
        self.boundary = watching.boundary
        self._losses = LossMeans()
        self._selected: Mapping[str, nn.Module] = {}
        if schedule.keep_best:
            self._selected = {"body": bench.body, "head": bench.tasks.end_task.head}
        self._evaluate = evaluate
        self._seed = seed
        self._observers = watching.observers

    def train(self) -> Progress:
        """Train, then restore the best state of the selected modules.

        Returns:
            The best score, and when it was reached.

        Raises:
            NumericalError: training has diverged.
            Interrupted: a signal has asked to stop.
        """
        self.clock.start()
        if not self.progress.evaluated:
            self._evaluation()
            self._reached()
        self.clock.look(self.bench.processes)
        while not self._spent() and not self._out_of_patience():
            let_others_load()
            before = self.bench.steps
            # In every round, because a checkpoint has the dropout of the first process alone.
            separate_dropout(self._seed, self.bench.steps, self.bench.processes)
            self.bench.begin_round()
            self.weighter.round(self.bench)
            self._losses.include(self.bench.losses)
            self.clock.look(self.bench.processes)
            for observer in self._observers:
                observer.after_round(self.bench.steps, self._record())
            due = before // self.schedule.eval_every < self.bench.steps // self.schedule.eval_every
            if due or self._spent():
                self._evaluation()
            self._reached()
        self._restore_best()
        return self.progress

    def score(self) -> Mapping[str, float]:
        """The dev scores of the model in its current state."""
        return self._evaluate()

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue training except the clock, as tensors and JSON values."""
        return {
            **self.bench.state_dict(),
            "weighter": self.weighter.state_dict(),
            "progress": self.progress.state_dict(),
            "losses": self._losses.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state.

        Args:
            state: what `state_dict` returned.

        Raises:
            DataError: the state belongs to another model or space.
        """
        self.bench.load_state_dict(state)
        self.weighter.load_state_dict(state["weighter"])
        self.progress.load_state_dict(state["progress"])
        self._losses.load_state_dict(state["losses"])

    def _reached(self) -> None:
        if self.boundary is not None:
            self.boundary.reached(self)

    def _spent(self) -> bool:
        return self.bench.steps >= self.schedule.last_step or self.clock.spent

    def _out_of_patience(self) -> bool:
        return self.progress.evaluations_since_best >= self.schedule.patience

    def _evaluation(self) -> None:
        found = self._evaluate()
        # All processes must agree on which model is best and when to stop.
        dev = dict(zip(found, self.bench.processes.agree([*found.values()]), strict=True))
        for name, value in dev.items():
            if not math.isfinite(value):
                raise NumericalError(
                    f"step {self.bench.steps}: the {name} of the model is {value}: "
                    "training has diverged; lower the learning rate"
                )
        score, progress = dev[self.schedule.metric], self.progress
        best = score > progress.best_score
        if best:
            progress.best_score = score
            progress.best_step = self.bench.steps
            progress.evaluations_since_best = 0
            progress.best_state = self._snapshot()
        else:
            progress.evaluations_since_best += 1
        losses, self._losses = self._ordered(self._losses.means()), LossMeans()
        for observer in self._observers:
            observer.after_evaluation(self.bench.steps, dev, best, losses)

    def _snapshot(self) -> dict[str, Tensor]:
        return {
            f"{name}.{key}": value.detach().to("cpu", copy=True)
            for name, module in self._selected.items()
            for key, value in module.state_dict(keep_vars=True).items()
            if not self.bench.frozen.holds(value)
        }

    def _restore_best(self) -> None:
        for name, module in self._selected.items():
            now = module.state_dict(keep_vars=True)
            frozen = {key: value for key, value in now.items() if self.bench.frozen.holds(value)}
            best = {
                key.removeprefix(f"{name}."): value
                for key, value in self.progress.best_state.items()
                if key.startswith(f"{name}.")
            }
            module.load_state_dict(best | frozen)

    def _ordered(self, losses: Mapping[str, float]) -> dict[str, float]:
        """The losses with the end task's first."""
        name = self.bench.end_task
        return ({name: losses[name]} if name in losses else {}) | dict(losses)

    def _record(self) -> dict[str, Any]:
        weights = dict(self.weighter.weights())
        end_task_weight = weights.pop(self.bench.end_task)
        record: dict[str, Any] = {
            "step": self.bench.steps,
            "end_task_weight": end_task_weight,
            "weights": weights,
            "losses": self._ordered(self.bench.losses.means()),
        }
        last = self.bench.last
        if last is not None:
            record["coefficients"] = dict(last.coefficients)
            if last.signals is not None:
                record |= _measured(last.signals)
        if self.bench.numbers.skipped:
            record["skipped"] = self.bench.numbers.skipped
        return record | dict(self.weighter.record())


def _measured(signals: StepSignals) -> dict[str, Any]:
    return {
        "cosines": dict(signals.cosine),
        "dots": dict(signals.dot),
        "norms": dict(signals.norm),
        "auxiliary": dict(signals.auxiliary),
        "dev_norm": signals.dev_norm,
    }
