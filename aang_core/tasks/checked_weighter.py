"""Checks of weighters: their weights, records and states.

They are checked when the weighter is made, after its first round and when its state is restored. A
coefficient of a step that is not finite is refused by the workbench, in every step.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, get_args

from aang_core.errors import AangError, PluginError, WeighterError, call_of_plugin, raised
from aang_core.plugins.loading import plugin_of
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.weighting import (
    TaskCard,
    Weighter,
    lacks_observe,
    problem_of_sum,
)
from aang_core.tasks.workbench import Signal, Workbench


class CheckedWeighter(Weighter):
    """A weighter whose weights must be for the run's tasks, not negative, and sum to one.

    Args:
        weighter: the weighter.
        author: the primitive that errors name; None for a weighter that the caller passed as an
            object, whose exceptions pass unchanged, because the code is the caller's own.
        tasks: the names of all tasks.

    Raises:
        PluginError: it is not a :class:`Weighter`, asks for unknown signals or for signals that it
            cannot take, or its first weights, record or state are invalid.
    """

    def __init__(self, weighter: Weighter, author: Primitive | None, tasks: Iterable[str]) -> None:
        self._weighter = weighter
        self._author = author
        self._tasks = set(tasks)
        if not isinstance(weighter, Weighter):
            base = "a subclass of aang_core.Weighter"
            raise self._broken("what it makes", base, type(weighter).__name__)
        known = get_args(Signal)
        if not set(weighter.signals) <= set(known):
            raise self._broken("signals", f"some of {', '.join(known)}", weighter.signals)
        self.signals = frozenset(weighter.signals)
        self.uses_auxiliaries = weighter.uses_auxiliaries
        self.several_draws = weighter.several_draws
        self.normalised = weighter.normalised
        self.round_steps = self._steps_of_round()
        if lacks_observe(weighter):
            raise self._broken(
                "observe",
                f"a method that learns from {', '.join(sorted(self.signals))}; write one, or leave "
                "signals empty",
                "none",
            )
        # Errors in these are found before anything is trained or written.
        self._check()
        self._has_learned = False

    @classmethod
    def make(
        cls,
        primitive: Primitive,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        options: Mapping[str, Any],
    ) -> "CheckedWeighter":
        """Make the weighter of ``primitive`` for these tasks.

        Raises:
            AangError: it cannot be made with these options.
        """
        names = [card.name for card in (end_task, *auxiliaries)]
        return cls(primitive.make(end_task, auxiliaries, **options), primitive, names)

    def round(self, bench: Workbench) -> None:
        """See :meth:`aang_core.tasks.weighting.Weighter.round`.

        Raises:
            PluginError: the round has taken no step, so that training would never end; or it raised
                something, or another plug-in did in one of its steps, such as the one with the
                engine.
        """
        left = bench.steps_left
        try:
            self._weighter.round(bench)
        except WeighterError as error:
            raise self._fault(str(error)) from error
        except (AangError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            # An exception from the bench in the middle of a round is not the weighter's fault.
            call = call_of_plugin(error)
            if call is None:
                raise
            function, caller = call
            if caller.f_globals["__name__"] in (__name__, Weighter.__module__):
                with self._blamed("its round"):
                    raise
            module, file = function.f_globals["__name__"], function.f_code.co_filename
            if (plugin := plugin_of(module, file)) is None:
                raise
            what = f"a step {raised(error)}"
            raise plugin.fault(f"plug-in {plugin.entry_point}", what) from error
        if left > 0 and bench.steps_left == left:
            raise self._broken(
                "a round",
                "at least one step; call bench.step, bench.descend or bench.trial",
                "none, so training would never end",
            )
        if not self._has_learned:
            self._has_learned = True
            self._check()

    def weights(self) -> Mapping[str, float]:
        """See :meth:`aang_core.tasks.weighting.Weighter.weights`."""
        with self._blamed("asking for its weights"):
            return self._weighter.weights()

    def record(self) -> Mapping[str, Any]:
        """See :meth:`aang_core.tasks.weighting.Weighter.record`."""
        with self._blamed("asking for its record"):
            return self._weighter.record()

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`aang_core.tasks.weighting.Weighter.state_dict`."""
        with self._blamed("asking for its state"):
            return self._weighter.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.tasks.weighting.Weighter.load_state_dict`.

        Raises:
            PluginError: the weighter's weights or state are invalid with it.
        """
        with self._blamed("restoring its state"):
            self._weighter.load_state_dict(state)
        self._check()

    def _check(self) -> None:
        """Raise PluginError unless weights, record and state keep the contract."""
        weights: Any = self.weights()
        if not isinstance(weights, Mapping):
            raise self._broken("weights", "a mapping from task to number", weights)
        if set(weights) != self._tasks:
            missing, strange = self._tasks - set(weights), set(weights) - self._tasks
            parts = [f"{len(weights)} weights"]
            parts += [f"none for {_some(missing)}"] if missing else []
            parts += [f"one for {_some(strange)}, which is no task"] if strange else []
            raise self._broken(
                "weights", f"one for each of the {len(self._tasks)} tasks", ", ".join(parts)
            )
        for task, weight in weights.items():
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not number or not math.isfinite(weight) or weight < 0:
                raise self._broken(
                    f"the weight of {task}", "a finite number, not negative", repr(weight)
                )
        problem = problem_of_sum(weights.values())
        if problem is not None:
            raise self._fault(f"the sum of the weights: {problem}")
        self._require_json("record", self.record())
        self._require_json("state_dict", self.state_dict())

    def _steps_of_round(self) -> int | None:
        """The steps of a round that the weighter declares; None if it declares none."""
        steps: Any = self._weighter.round_steps
        whole = isinstance(steps, int) and not isinstance(steps, bool) and steps > 0
        if steps is not None and not whole:
            raise self._broken("round_steps", "a whole number of steps, 1 or more", repr(steps))
        return steps if whole else None

    def _require_json(self, what: str, value: Any) -> None:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise self._broken(what, "JSON values by name", str(error)) from error
        if not isinstance(value, Mapping):
            raise self._broken(what, "JSON values by name", value)

    def _fault(self, what: str) -> PluginError:
        if self._author is None:
            return PluginError(f"weighter {type(self._weighter).__name__}: {what}")
        return self._author.fault(what)

    def _blamed(self, doing: str) -> AbstractContextManager[None]:
        return nullcontext() if self._author is None else self._author.blamed(doing)

    def _broken(self, what: str, expected: str, got: object) -> PluginError:
        shown = got if isinstance(got, str) else repr(got)
        return self._fault(f"{what}: expected {expected}, got {shown}")


def _some(names: set[str]) -> str:
    first = sorted(map(str, names))[:3]
    return ", ".join(first) + (" …" if len(names) > len(first) else "")
