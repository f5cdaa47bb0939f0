"""The arms against Beta distributions worked out by hand."""

from collections import Counter

import pytest
import torch
from aang_plugin_bandit.beta_arms import BetaArms

from aang_core import ConfigError


def arms(**counts: tuple[float, float]) -> BetaArms:
    made = BetaArms(counts, prior=1.0, decay=0.0)
    made.load_state_dict(counts)
    return made


def test_every_arm_fades_and_the_one_that_was_pulled_learns() -> None:
    """γ = 0.5 from (1, 1): one reward for a, then none for b."""
    made = BetaArms(["a", "b"], prior=1.0, decay=0.5)
    made.reward("a", True)
    assert made.state_dict() == {"a": [2.0, 1.0], "b": [1.0, 1.0]}
    made.reward("b", False)
    assert made.state_dict() == {"a": [1.5, 1.0], "b": [1.0, 2.0]}
    assert made.utilities() == pytest.approx({"a": 0.6, "b": 1 / 3})


def test_without_decay_the_counts_are_those_of_the_rewards() -> None:
    made = BetaArms(["a"], prior=2.0, decay=0.0)
    for reward in (True, True, False):
        made.reward("a", reward)
    assert made.state_dict() == {"a": [4.0, 3.0]}


def test_chances_are_exact() -> None:
    """P(Beta(2, 1) > U) = E θ = 2/3; three even arms share alike."""
    assert arms(a=(2, 1), b=(1, 1)).chances() == pytest.approx({"a": 2 / 3, "b": 1 / 3}, abs=1e-6)
    assert arms(a=(1, 1), b=(1, 1), c=(1, 1)).chances() == pytest.approx(
        dict.fromkeys("abc", 1 / 3), abs=1e-6
    )
    assert arms(a=(3, 7)).chances() == {"a": 1.0}


def test_arms_far_apart_have_chances_too() -> None:
    chances = arms(a=(900, 1), b=(1, 900), c=(0.01, 0.01)).chances()
    assert sum(chances.values()) == pytest.approx(1)
    assert chances["b"] == pytest.approx(0, abs=1e-12)


def test_arms_are_drawn_as_often_as_their_chances_say() -> None:
    made, generator = arms(a=(4, 2), b=(1, 1), c=(2, 5)), torch.Generator().manual_seed(0)
    drawn = Counter(made.draw(generator) for _ in range(4000))
    chances = made.chances()
    for name in "abc":
        error = (chances[name] * (1 - chances[name]) / 4000) ** 0.5
        assert abs(drawn[name] / 4000 - chances[name]) < 4 * error


def test_counts_of_other_tasks_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"differ in: b\."):
        arms(a=(1, 1)).load_state_dict({"a": [1, 1], "b": [1, 1]})
