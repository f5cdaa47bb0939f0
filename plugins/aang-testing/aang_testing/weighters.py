"""The contract of weighters."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from aang_core.contracts import ContractError, expect, expect_base
from aang_core.tasks.weighting import TaskCard, Weighter, lacks_observe, problem_of_sum
from aang_core.tasks.workbench import Signal, StepSignals
from aang_testing.expectation import PROPERTY, expect_json, only_generator_draws
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
        with only_generator_draws("the weighter", "bench.generator"):
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
    expect_base(weighter, Weighter)
    strange = set(weighter.signals) - set(get_args(Signal))
    expect(not strange, "signals", f"some of {get_args(Signal)}", sorted(strange))
    uses = weighter.uses_auxiliaries
    expect(isinstance(uses, bool), "uses_auxiliaries", "True or False", uses)
    if lacks_observe(weighter):
        asked = ", ".join(sorted(weighter.signals))
        expect(False, "observe", f"a method that learns from {asked}, or no signals", "none")


def _check_last_round(factory: Factory, cards: Sequence[TaskCard], seed: int) -> None:
    """A round takes ``round_steps`` steps, or as many as the run has left."""
    weighter = factory(cards[0], cards[1:])
    steps = weighter.round_steps
    if steps is None:
        return
    whole = isinstance(steps, int) and not isinstance(steps, bool) and steps > 0
    expect(whole, "round_steps", "a whole number of steps, 1 or more", steps)
    names = [card.name for card in cards[1:]]
    bench = RecordingWorkbench(cards[0].name, names, seed=seed, steps=steps + 1)
    for taken in (steps, steps + 1):
        weighter.round(bench)
        what = f"steps after a round of {steps}, in a run of {steps + 1}"
        expect(bench.steps_taken == taken, what, taken, bench.steps_taken)


def _check_rounds(
    factory: Factory,
    cards: Sequence[TaskCard],
    seed: int,
    measure_every: int,
    draws_per_step: int,
) -> None:
    weighter = factory(cards[0], cards[1:])
    bench = _bench(cards, seed, measure_every, draws_per_step)
    end, names = cards[0].name, {card.name for card in cards}
    for round_ in range(ROUNDS):
        _expect_weights(weighter.weights(), names, f"weights before round {round_}")
        expect_json(weighter.record(), f"record before round {round_}")
        left = bench.steps_left
        weighter.round(bench)
        taken = left - bench.steps_left
        expect(taken > 0, f"steps, descents and trials in round {round_}", "some", "none")
    for descent in (*bench.descents, *bench.of_heads):
        usable = all(math.isfinite(c) for c in descent.values())
        expect(usable, "coefficients of a descent", "finite", descent)
    for weights in filter(None, bench.sample_weights):
        known = set(weights) == names - {end}
        expect(known, "tasks of a draw", "all auxiliaries", sorted(weights))
        _expect_usable(weights, "weights of a draw")
    for what, taken_up in (("trial", bench.trials), ("step", bench.coefficients)):
        for coefficients in taken_up:
            strange = sorted(coefficients.keys() - names)
            expect(not strange, f"tasks of a {what}", "the end task and auxiliaries", strange)
            _expect_usable(coefficients, f"coefficients of a {what}")
    for coefficients in bench.coefficients:
        expect(end in coefficients, "tasks of a step", "the end task too", [*coefficients])
        _expect_sum(coefficients, "coefficients of a step", normalised=weighter.normalised)


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
    going, back = _bench(cards, seed + 1), _bench(cards, seed + 1)
    for _ in range(ROUNDS):
        what = "weights after loading a state that went through JSON"
        _expect_same(weighter.weights(), resumed.weights(), what)
        weighter.round(going)
        resumed.round(back)
    after = "after loading a state"
    _expect_same(going.coefficients, back.coefficients, f"coefficients of steps {after}")
    _expect_same(going.descents, back.descents, f"coefficients of descents {after}")
    _expect_same(going.trials, back.trials, f"trials {after}")
    _expect_same(going.applied, back.applied, f"applied updates {after}")
    text = expect_json(state, "a state taken earlier")
    _expect_same(saved, text, "a state taken earlier, after more rounds")


def _expect_same(then: object, now: object, what: str) -> None:
    expect(now == then, what, then, now)


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


def _expect_weights(weights: Mapping[str, float], names: set[str], what: str) -> None:
    expect(set(weights) == names, f"names of the {what}", sorted(names), sorted(weights))
    _expect_usable(weights, what)
    _expect_sum(weights, what)


def _expect_usable(numbers: Mapping[str, float], what: str) -> None:
    usable = all(math.isfinite(number) and number >= 0 for number in numbers.values())
    expect(usable, what, "finite and not negative", dict(numbers))


def _expect_sum(weights: Mapping[str, float], what: str, *, normalised: bool = True) -> None:
    problem = problem_of_sum(weights.values(), normalised=normalised)
    if problem is not None:
        raise ContractError(f"sum of the {what}: {problem}")
