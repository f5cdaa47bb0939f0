"""The contract of weighters."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from aang_core.tasks.signals import Signal, StepSignals
from aang_core.tasks.weighting import TaskCard, Weighter, lacks_observe, problem_of_sum
from aang_testing.expectation import PROPERTY, expect, expect_json
from aang_testing.workbench import RecordingWorkbench

Factory = Callable[[TaskCard, Sequence[TaskCard]], Weighter]
ROUNDS = 4

_NAMES = st.text(min_size=1, max_size=8)
_FACTORS = st.dictionaries(
    st.sampled_from(["data", "transform", "representation", "output", "colour"]),
    st.sampled_from(["a", "b", "c"]),
)


@st.composite
def task_cards(draw: st.DrawFn, max_auxiliaries: int = 6) -> list[TaskCard]:
    """The end task, then up to ``max_auxiliaries`` other tasks, with or without factors."""
    names = draw(st.lists(_NAMES, min_size=1, max_size=max_auxiliaries + 1, unique=True))
    others = (TaskCard(name, draw(_FACTORS), free=draw(st.booleans())) for name in names[1:])
    return [TaskCard(names[0]), *others]


def check_weighter(factory: Factory) -> None:
    """Check the weighters that ``factory(end_task, auxiliaries)`` makes.

    Args:
        factory: the class itself, or a function that adds options.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """

    @PROPERTY
    @given(
        cards=task_cards(),
        seed=st.integers(0, 2**32),
        measure_every=st.integers(1, 2),
        draws_per_step=st.integers(1, 3),
    )
    def any_tasks(
        cards: list[TaskCard], seed: int, measure_every: int, draws_per_step: int
    ) -> None:
        _check_declarations(factory(cards[0], cards[1:]))
        _check_rounds(factory, cards, seed, measure_every, draws_per_step)
        _check_state(factory, cards, seed)
        _check_last_round(factory, cards, seed)

    any_tasks()
    _check_constant_signals(factory)


def _bench(
    cards: Sequence[TaskCard], seed: int, measure_every: int = 1, draws_per_step: int = 1
) -> RecordingWorkbench:
    return RecordingWorkbench(
        cards[0].name,
        [card.name for card in cards[1:]],
        seed=seed,
        measure_every=measure_every,
        draws_per_step=draws_per_step,
        skip_every=3,
    )


def _check_declarations(weighter: Weighter) -> None:
    strange = set(weighter.signals) - set(get_args(Signal))
    expect(not strange, "signals", f"some of {get_args(Signal)}", sorted(strange))
    expect(
        isinstance(weighter.uses_auxiliaries, bool),
        "uses_auxiliaries",
        "True or False",
        weighter.uses_auxiliaries,
    )
    if lacks_observe(weighter):
        asked = ", ".join(sorted(weighter.signals))
        expect(False, "observe", f"a method that learns from {asked}, or no signals", "none")


def _check_last_round(factory: Factory, cards: Sequence[TaskCard], seed: int) -> None:
    """A round takes ``round_steps`` steps, or as many as the run has left."""
    weighter = factory(cards[0], cards[1:])
    steps = getattr(weighter, "round_steps", None)
    if steps is None:
        return
    whole = isinstance(steps, int) and not isinstance(steps, bool) and steps > 0
    expect(whole, "round_steps", "a whole number of steps, 1 or more", steps)
    names = [card.name for card in cards[1:]]
    bench = RecordingWorkbench(cards[0].name, names, seed=seed, steps=steps + 1)
    for taken in (steps, steps + 1):
        weighter.round(bench)
        expect(
            bench.steps_taken == taken,
            f"steps after a round of {steps}, in a run of {steps + 1}",
            taken,
            bench.steps_taken,
        )


def _check_rounds(
    factory: Factory,
    cards: Sequence[TaskCard],
    seed: int,
    measure_every: int,
    draws_per_step: int,
) -> None:
    weighter = factory(cards[0], cards[1:])
    bench = _bench(cards, seed, measure_every, draws_per_step)
    names = {card.name for card in cards}
    for round_ in range(ROUNDS):
        _expect_weights(weighter.weights(), names, f"weights before round {round_}")
        expect_json(weighter.record(), f"record before round {round_}")
        left = bench.steps_left
        weighter.round(bench)
        expect(
            bench.steps_left < left, f"steps, descents and trials in round {round_}", "some", "none"
        )
    for descent in (*bench.descents, *bench.of_heads):
        usable = all(math.isfinite(c) for c in descent.values())
        expect(usable, "coefficients of a descent", "finite", descent)
    for weights in filter(None, bench.sample_weights):
        known = set(weights) == names - {cards[0].name}
        expect(known, "tasks of a draw", "all auxiliaries", sorted(weights))
        usable = all(math.isfinite(w) and w >= 0 for w in weights.values())
        expect(usable, "weights of a draw", "finite and not negative", dict(weights))
    for coefficients in bench.trials:
        strange = sorted(coefficients.keys() - names)
        expect(not strange, "tasks of a trial", "the end task and auxiliaries", strange)
        usable = all(math.isfinite(c) and c >= 0 for c in coefficients.values())
        expect(usable, "coefficients of a trial", "finite and not negative", coefficients)
    for coefficients in bench.coefficients:
        strange = sorted(coefficients.keys() - names)
        expect(not strange, "tasks of a step", "the end task and auxiliaries", strange)
        _expect_weights(
            coefficients,
            set(coefficients),
            "coefficients of a step",
            normalised=getattr(weighter, "normalised", True),
        )
        expect(
            cards[0].name in coefficients, "tasks of a step", "the end task too", [*coefficients]
        )


def _check_state(factory: Factory, cards: Sequence[TaskCard], seed: int) -> None:
    """A weighter that loads a saved state continues exactly like the one that saved it."""
    weighter = factory(cards[0], cards[1:])
    bench = _bench(cards, seed)
    for _ in range(ROUNDS):
        weighter.round(bench)
    state = weighter.state_dict()
    saved = expect_json(state, "state_dict")

    resumed = factory(cards[0], cards[1:])
    resumed.load_state_dict(json.loads(saved))
    benches = _bench(cards, seed + 1), _bench(cards, seed + 1)
    for _ in range(ROUNDS):
        expect(
            resumed.weights() == weighter.weights(),
            "weights after loading a state that went through JSON",
            weighter.weights(),
            resumed.weights(),
        )
        weighter.round(benches[0])
        resumed.round(benches[1])
    expect(
        benches[0].coefficients == benches[1].coefficients,
        "coefficients of steps after loading a state",
        benches[0].coefficients,
        benches[1].coefficients,
    )
    expect(
        benches[0].descents == benches[1].descents,
        "coefficients of descents after loading a state",
        benches[0].descents,
        benches[1].descents,
    )
    expect(
        (benches[0].trials, benches[0].applied) == (benches[1].trials, benches[1].applied),
        "trials and applied updates after loading a state",
        benches[0].applied,
        benches[1].applied,
    )
    now = expect_json(state, "a state taken earlier")
    expect(now == saved, "a state taken earlier, after more rounds", saved, now)


def _check_constant_signals(factory: Factory) -> None:
    """Five hundred steps with the same signals: nothing may overflow."""
    cards = [TaskCard("end"), TaskCard("up", {"stage": "a"}), TaskCard("down", {"stage": "b"})]
    value = {"end": 1.0, "up": 1.0, "down": -1.0}

    def measure(coefficients: Mapping[str, float]) -> StepSignals:
        signals = {name: value[name] for name in coefficients}
        ones = dict.fromkeys(coefficients, 1.0)
        auxiliary: dict[Signal, float] = {"cosine": -1.0, "dot": -1.0, "norm": 1.0, "loss": 1.0}
        return StepSignals(signals, signals, ones, auxiliary, 1.0, ones)

    weighter = factory(cards[0], cards[1:])
    bench = RecordingWorkbench("end", ["up", "down"], measure=measure)
    for _ in range(500):
        weighter.round(bench)
    _expect_weights(weighter.weights(), set(value), "weights after 500 equal steps")


def _expect_weights(
    weights: Mapping[str, float], names: set[str], what: str, *, normalised: bool = True
) -> None:
    expect(set(weights) == names, f"names of the {what}", sorted(names), sorted(weights))
    usable = all(math.isfinite(weight) and weight >= 0 for weight in weights.values())
    expect(usable, what, "finite and not negative", dict(weights))
    problem = problem_of_sum(weights.values(), normalised=normalised)
    if problem is not None:
        raise AssertionError(f"sum of the {what}: {problem}")
