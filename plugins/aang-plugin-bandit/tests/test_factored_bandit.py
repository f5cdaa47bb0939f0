"""The factored bandit: beliefs computed by hand, choices, and learned preferences."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from aang_plugin_bandit.beliefs import Beliefs
from aang_plugin_bandit.choices import Choice, Choices
from aang_plugin_bandit.factored_bandit import DRAWS, FactoredBandit, Gains
from aang_testing import Pull, QuadraticProblem, RecordingWorkbench, check_weighter

from aang_core import AangError, ConfigError, TaskCard

from .quadratics import problem

END = TaskCard("end")
A = TaskCard("a", {"transform": "mask", "output": "denoise"})
B = TaskCard("b", {"transform": "mask", "output": "end-task"})
C = TaskCard("c", {"transform": "no-op", "output": "end-task"})


def scripted(*scores: float, **options: Any) -> RecordingWorkbench:
    left = iter(scores)
    names = ["a", "b", "c"]
    return RecordingWorkbench("end", names, score=lambda coefficients: next(left), **options)


@pytest.mark.parametrize("draws", [8, pytest.param(DRAWS, marks=pytest.mark.full)])
def test_it_keeps_the_contract(draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the weights, which take most of the time, are of few draws."""
    monkeypatch.setattr("aang_plugin_bandit.factored_bandit.DRAWS", draws)
    check_weighter(FactoredBandit)
    check_weighter(
        lambda end, others: FactoredBandit(
            end, others, n=3, k=1, rewind=True, decay=0.0, end_task_weights=[0.25]
        )
    )
    check_weighter(
        lambda end, others: FactoredBandit(end, others, prior=5.0, noise=0.01, dev_rows=None)
    )


def test_beliefs_have_the_marginals_of_bayes_rule() -> None:
    """One observation of a linear model, against the posterior with its whole covariance."""
    factors = [("s", name) for name in "wxyz"]
    made = Beliefs(factors, prior=0.7, noise=0.4, decay=0.0)
    phi = torch.tensor([1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    shares = {f: p for f, p in zip(factors, phi.tolist(), strict=True) if p}
    made.learn(shares, 2.0)
    precision = torch.eye(4, dtype=torch.float64) / 0.49 + torch.outer(phi, phi) / 0.16
    covariance = torch.linalg.inv(precision)
    mean = covariance @ phi * 2.0 / 0.16
    assert list(made.means()["s"].values()) == pytest.approx(mean.tolist())
    spread = covariance.diagonal().sqrt().tolist()
    assert list(made.deviations()["s"].values()) == pytest.approx(spread)


def test_beliefs_fade_towards_the_prior() -> None:
    """γ = 0.5 halves what precision there is beyond the prior's, and the mean with it."""
    made = Beliefs([("s", "seen"), ("s", "other")], prior=1.0, noise=1.0, decay=0.5)
    made.learn({("s", "seen"): 1.0}, 1.0)
    assert made.state_dict()["mean"]["s"]["seen"] == pytest.approx(0.5)
    assert made.state_dict()["variance"]["s"]["seen"] == pytest.approx(0.5)
    made.learn({("s", "other"): 1.0}, 0.0)
    # Precision 0.5 · 2 + 0.5 · 1 = 1.5; mean 0.5 · 0.5 · 2 / 1.5 = 1/3.
    assert made.state_dict()["mean"]["s"]["seen"] == pytest.approx(1 / 3)
    assert made.state_dict()["variance"]["s"]["seen"] == pytest.approx(1 / 1.5)


def test_two_rounds_by_hand() -> None:
    """Both objectives of two, so that nothing is left to chance: λ_e = 1/2, 1/4 each."""
    bench = scripted(0.2, 0.5, 0.45)
    weighter = FactoredBandit(END, [A, B], k=2, n=2, end_task_weights=[0.5], decay=0.0, noise=1.0)
    weighter.round(bench)
    assert bench.coefficients[0] == bench.coefficients[1]
    assert bench.coefficients[0] == {"end": 0.5, "a": 0.25, "b": 0.25}
    # y = 0.3 / 0.3; φ is 1, 1 for level and λ_e, 1/4 for own factors and outputs, 1/2 for mask;
    # v = 1/4 everywhere: S = 1 + (1 + 1 + 4/16 + 1/4) / 4 = 1.625.
    record = weighter.record()
    assert (record["gain"], record["reward"]) == pytest.approx((0.3, 1.0))
    assert record["level"] == pytest.approx(0.25 / 1.625)
    assert record["end_task_weights"] == {"0.5": pytest.approx(0.25 / 1.625)}
    own = pytest.approx(0.0625 / 1.625)
    assert record["factors"] == {
        "all": {"a": own, "b": own},
        "transform": {"mask": pytest.approx(0.125 / 1.625)},
        "output": {"denoise": own, "end-task": own},
    }
    assert record["deviations"]["all"]["a"] ** 2 == pytest.approx(0.25 - 0.0625**2 / 1.625)
    assert record["deviations"]["transform"]["mask"] ** 2 == pytest.approx(0.25 - 0.125**2 / 1.625)

    weighter.round(bench)
    # Gains 0.3 and −0.05 have a root mean square of √0.04625 = 0.215058; y = −0.232495. Explained
    # was 0.384615, S = 1 + 2 · 0.211538 + 4/16 · 0.247596 + 1/4 · 0.240385 = 1.545072.
    record = weighter.record()
    assert record["reward"] == pytest.approx(-0.232495, abs=1e-6)
    assert record["level"] == pytest.approx(0.153846 - 0.211538 / 1.545072 * 0.617111, abs=1e-6)
    assert record["factors"]["transform"]["mask"] == pytest.approx(
        0.076923 - 0.5 * 0.240385 / 1.545072 * 0.617111, abs=1e-6
    )


def test_a_choice_is_the_best_of_all() -> None:
    """Against every set and every end-task weight, one by one."""
    cards = [A, B, C, TaskCard("plain")]
    choices = Choices(cards, [0.25, 0.5, 1.0], 2)
    names = [card.name for card in cards]
    values = torch.randn(
        50, len(choices.factors), dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )

    def worth(choice: Choice, row: torch.Tensor) -> float:
        of = dict(zip(choices.factors, row.tolist(), strict=True))
        return sum(share * of[factor] for factor, share in choices.shares(choice).items())

    everything = [Choice(1.0, ())] + [
        Choice(weight, (one, other))
        for weight in (0.25, 0.5)
        for one in names
        for other in names
        if one < other
    ]
    chosen = choices.best(values)
    for choice, row in zip(chosen, values, strict=True):
        assert worth(choice, row) == pytest.approx(max(worth(c, row) for c in everything))
    assert {choice.end_task_weight for choice in chosen} == {0.25, 0.5, 1.0}


def test_an_objective_that_was_never_tried_learns_from_its_primitives() -> None:
    choices = Choices([A, B, C], [0.5], 1)
    made = Beliefs(choices.factors, prior=0.5, noise=0.1, decay=0.0)
    made.learn(choices.shares(Choice(0.5, ("b",))), 1.0)
    mean = made.means()
    assert mean["all"]["a"] == mean["all"]["c"] == 0
    assert mean["transform"]["mask"] == mean["output"]["end-task"] > 0
    assert mean["transform"]["no-op"] == mean["output"]["denoise"] == 0


def test_with_the_whole_loss_on_the_end_task_no_objective_is_trained_or_credited() -> None:
    bench = scripted(0.1, 0.2)
    weighter = FactoredBandit(END, [A, B], k=1, end_task_weights=[1.0])
    weighter.round(bench)
    assert bench.coefficients == [{"end": 1.0}]
    assert set(weighter.record()["factors"]["all"].values()) == {0.0}
    assert weighter.weights() == {"end": 1.0, "a": 0.0, "b": 0.0}


def test_gains_are_in_units_of_the_usual_one() -> None:
    gains = Gains(decay=0.5)
    assert gains.in_usual_ones(0.0) == 0.0
    # Squares 0 and 0.04, the older counting half: 0.04 / 1.5.
    assert gains.in_usual_ones(-0.2) == pytest.approx(-0.2 / math.sqrt(0.04 / 1.5))


def test_a_round_that_the_run_cuts_short_teaches_nothing() -> None:
    bench = scripted(0.5, 0.6, steps=7)
    weighter = FactoredBandit(END, [A, B, C], k=5)
    weighter.round(bench)
    before = weighter.state_dict()
    weighter.round(bench)
    assert len(bench.coefficients) == 7
    assert weighter.state_dict() == before
    assert "gain" not in weighter.record()


def test_divergence_is_told_and_teaches_nothing() -> None:
    weighter = FactoredBandit(END, [A, B, C])
    bench = scripted(0.5, 0.6, math.inf)
    weighter.round(bench)
    before = weighter.state_dict()
    with pytest.raises(AangError, match="diverged"):
        weighter.round(bench)
    assert weighter.state_dict() == before


HELPERS = [
    Pull("x/helps", (0.0, 0.0), {"transform": "x", "output": "helps"}),
    Pull("y/helps", (0.0, 0.0), {"transform": "y", "output": "helps"}),
    Pull("x/harms", (9.0, -9.0), {"transform": "x", "output": "harms"}),
    Pull("y/harms", (9.0, -9.0), {"transform": "y", "output": "harms"}),
]


def trained(tasks: Sequence[Pull], rounds: int, seed: int, **options: Any) -> FactoredBandit:
    made = problem(tasks, seed=seed)
    weighter = FactoredBandit(made.end, made.auxiliaries, k=2, **options)
    for _ in range(rounds):
        weighter.round(made.bench)
    return weighter


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [1, 2])
def test_it_comes_to_prefer_the_primitive_that_helps(seed: int, n: int) -> None:
    weighter = trained(HELPERS, 40, seed, n=n, end_task_weights=[0.5])
    weights, factors = weighter.weights(), weighter.record()["factors"]
    assert factors["output"]["helps"] > factors["output"]["harms"]
    helps = weights["x/helps"] + weights["y/helps"]
    assert helps > 0.35, "of a half"


@pytest.mark.parametrize("seed", range(8))
def test_where_all_objectives_harm_it_comes_back_to_the_end_task_alone(seed: int) -> None:
    weighter = trained(HELPERS[2:], 40, seed, end_task_weights=[0.1, 1.0])
    assert weighter.weights()["end"] > 0.8


def test_a_branch_is_rewound_where_the_score_fell() -> None:
    """θ goes back, the steps stay counted, and the next branch is compared with the same score."""
    made = problem(HELPERS[2:3])
    weighter = FactoredBandit(made.end, made.auxiliaries, k=3, end_task_weights=[0.01], rewind=True)
    before, score = made.theta.tolist(), -made.theta.detach().norm().item()
    for steps in (3, 6):
        weighter.round(made.bench)
        assert weighter.record()["rewound"] is True
        assert weighter.record()["gain"] < 0
        assert made.theta.tolist() == before
        assert made.bench.steps == steps
        assert weighter.state_dict()["score"] == score
    kept = FactoredBandit(made.end, made.auxiliaries, k=3, end_task_weights=[0.01])
    kept.round(made.bench)
    assert made.theta.tolist() != before


def test_a_branch_that_helped_stays() -> None:
    made = problem(HELPERS[:1])
    weighter = FactoredBandit(made.end, made.auxiliaries, k=3, end_task_weights=[0.5], rewind=True)
    weighter.round(made.bench)
    assert made.theta.tolist() == pytest.approx([4 * 0.9**3, -4 * 0.9**3])
    assert "rewound" not in weighter.record()


def _same_place(made: QuadraticProblem, other: QuadraticProblem) -> None:
    made.bench.load_state_dict(other.bench.state_dict())


def test_going_on_from_a_state_is_going_on() -> None:
    """The draws are the bench's; what the weighter holds goes through JSON."""
    whole, again = problem(HELPERS), problem(HELPERS)
    weighter = FactoredBandit(whole.end, whole.auxiliaries, k=2, rewind=True)
    resumed = FactoredBandit(whole.end, whole.auxiliaries, k=2, rewind=True)
    for _ in range(6):
        weighter.round(whole.bench)
    resumed.load_state_dict(json.loads(json.dumps(weighter.state_dict())))
    _same_place(again, whole)
    for _ in range(6):
        weighter.round(whole.bench)
        resumed.round(again.bench)
    assert resumed.state_dict() == weighter.state_dict()
    assert again.theta.tolist() == whole.theta.tolist()


def test_the_state_of_another_space_is_refused() -> None:
    state = FactoredBandit(END, [A, B, C]).state_dict()
    with pytest.raises(ConfigError, match="all c, transform no-op"):
        FactoredBandit(END, [A, B]).load_state_dict(state)
    with pytest.raises(ConfigError, match="end_task_weights"):
        FactoredBandit(END, [A, B, C], end_task_weights=[0.5]).load_state_dict(state)


def test_a_stage_may_not_have_the_name_of_the_bandits_own() -> None:
    with pytest.raises(ConfigError, match="'level'"):
        FactoredBandit(END, [TaskCard("x", {"level": "y"})])


@pytest.mark.parametrize(
    "options",
    [
        *({"k": value} for value in (0, 2.0, True)),
        *({"n": value} for value in (0, -1, 1.5, None)),
        *(
            {"end_task_weights": value}
            for value in ([], 0.5, "0.5", [0], [1.1], ["half"], [0.5, 0.5], None)
        ),
        *({"decay": value} for value in (-0.1, 1, math.nan)),
        *({"prior": value} for value in (0, -1, 1e200)),
        *({"noise": value} for value in (0, "loud")),
        {"dev_rows": 0},
        {"rewind": "yes"},
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"option {name}"):
        FactoredBandit(END, [A, B, C], **options)
