"""The loss shares of the released code, compared with values computed by hand."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from aang_plugin_factored.factored import Factored
from aang_testing import check_weighter

from aang_core import ConfigError, StepSignals, TaskCard

END = TaskCard("end")
TRANSFORMS = ("bert-op", "mask", "replace", "no-op")
REPRESENTATIONS = ("bidirectional", "left-to-right", "right-to-left", "random-factorized")


def card(data: str, transform: str, representation: str, output: str) -> TaskCard:
    factors = {
        "data": data,
        "transform": transform,
        "representation": representation,
        "output": output,
    }
    return TaskCard("/".join(factors.values()), factors)


TD = [
    card("task", transform, representation, output)
    for transform in TRANSFORMS
    for representation in REPRESENTATIONS
    for output in ("denoise", "end-task")
    if output == "denoise" or representation in ("bidirectional", "random-factorized")
]
"""The 24 legal objectives of td: right-to-left and left-to-right have no end task."""


def released(cards: Sequence[TaskCard], **options: Any) -> Factored:
    return Factored(END, cards, scaling="released", **options)


def auxiliary_sum(weighter: Factored, sampled: Sequence[str]) -> float:
    coefficients = weighter.coefficients(sampled)
    return math.fsum(c for name, c in coefficients.items() if name != "end")


def test_a_sample_by_hand() -> None:
    """Two representations; one of them with two transforms, one of these with two outputs.

    Of 64 rows each representation has 32, and each of the bidirectional transforms 16. So the two
    objectives on bert-op have the share 16/64 of the loss each, the one on mask too, the one from
    left to right 32/64; and each of the four times 1/4, the softmax of W_All + W_O.
    """
    sampled = [
        "task/bert-op/bidirectional/denoise",
        "task/bert-op/bidirectional/end-task",
        "task/mask/bidirectional/denoise",
        "task/no-op/left-to-right/denoise",
    ]
    coefficients = released(TD, n=4, end_task_weight=0.6).coefficients(sampled)
    assert coefficients == pytest.approx(
        {
            "end": 0.6,
            **dict.fromkeys(sampled[:3], 0.4 * 0.25 * 0.25),
            sampled[3]: 0.4 * 0.5 * 0.25,
        }
    )


def test_factors_move_rows_by_stage_and_losses_by_output() -> None:
    first, second = "task/mask/bidirectional/denoise", "task/mask/bidirectional/end-task"
    third = "task/mask/left-to-right/denoise"
    weighter = released(TD, lr=1.0, scaling_rows=1000)
    cosine = {first: 0.0, second: 1.0, third: 0.0, "end": 0.0}
    weighter.observe([first, second, third], StepSignals(cosine, {}, {}, {"cosine": 0.0}, 1.0))
    # W_R[bidirectional] = 1 and W_R[left-to-right] = 0: 1000 e / (e + 1) = 731.06, so 732 rows
    # and 1000 / (e + 1) = 268.94, so 269. W_T[mask] = 1 plays no part: no other transform is there.
    # W_All + W_O is 2 for the second, 0 for the others.
    total = math.e**2 + 2
    assert weighter.coefficients([first, second, third]) == pytest.approx(
        {
            "end": 0.5,
            first: 0.5 * 0.732 / total,
            second: 0.5 * 0.732 * math.e**2 / total,
            third: 0.5 * 0.269 / total,
        }
    )


@pytest.mark.parametrize(("n", "expected", "unrounded"), [(3, 0.352149, 0.347826), (6, None, None)])
def test_the_mean_over_all_samples_of_td(
    n: int, expected: float | None, unrounded: float | None
) -> None:
    """What the auxiliaries have of 1 − λ_e with uniform factors, in the mean: 0.35 and 0.19.

    If all objectives of a sample differ in data, transform or representation, the shares of their
    groups sum to one, and each is multiplied by 1/n: the sum is 1/n. Two objectives that differ in
    their output alone are in one group and both have its share, which adds share/n. Rounding each
    share of 64 rows up adds a little more.

    For n = 3: of the 2,024 samples of td, 8 × 22 = 176 have such a pair, and a third objective.
    Eight groups (4 transforms × 2 representations) have two outputs. The third objective is of
    another transform and the same representation in 6 cases, where the pair's share is 1/2, or of
    another representation in 16, where it is 1/2 as well. So the mean is
    1/3 (1 + 176/2024 × 1/2) = 0.347826.
    """
    samples = list(itertools.combinations([c.name for c in TD], n))
    if len(samples) > 20_000:
        samples = samples[::23]  # 5,852 of 134,596, at regular places of their order
    mean = math.fsum(auxiliary_sum(released(TD, n=n), s) for s in samples) / len(samples) / 0.5
    assert round(mean, 2) == {3: 0.35, 6: 0.19}[n]
    if expected is None or unrounded is None:
        return
    assert mean == pytest.approx(expected, abs=1e-6)
    assert unrounded == pytest.approx((1 + 176 / 2024 / 2) / 3, abs=1e-6)
    exact = released(TD, n=n, scaling_rows=3 * 2**40)
    mean = math.fsum(auxiliary_sum(exact, s) for s in samples) / len(samples) / 0.5
    assert mean == pytest.approx(unrounded, abs=1e-6)


def test_rows_that_two_data_share_are_divided_between_them() -> None:
    cards = [
        card("task", "mask", "bidirectional", "denoise"),
        card("s2orc", "mask", "bidirectional", "denoise"),
        card("s2orc", "no-op", "bidirectional", "denoise"),
    ]
    coefficients = released(cards).coefficients([c.name for c in cards])
    assert [coefficients[c.name] for c in cards] == pytest.approx([0.5 / 6, 0.5 / 12, 0.5 / 12])


def test_weights_are_those_of_all_objectives_and_sum_to_one() -> None:
    weighter = released(TD)
    assert not weighter.normalised
    assert Factored(END, TD).normalised
    weights = weighter.weights()
    assert weights == pytest.approx({"end": 0.5, **{c.name: 0.5 / 24 for c in TD}})
    assert released([]).weights() == {"end": 1.0}


def test_it_keeps_the_contract() -> None:
    """For whatever tasks there are: those without the four stages are given them."""

    def four_stages(end: TaskCard, auxiliaries: Sequence[TaskCard]) -> Factored:
        stages = ("data", "transform", "representation", "output")
        full = [
            TaskCard(c.name, {stage: c.factors.get(stage, "x") for stage in stages})
            for c in auxiliaries
        ]
        return Factored(end, full, scaling="released")

    check_weighter(four_stages)


@pytest.mark.parametrize(
    ("cards", "options", "says"),
    [
        (TD, {"scaling": "code"}, "scaling is 'code'; give paper or released"),
        (TD, {"scaling": "released", "scaling_rows": 0}, "scaling_rows is 0"),
        (
            [TaskCard("a", {"transform": "mask", "output": "denoise"})],
            {"scaling": "released"},
            "'a' has no representation and no data",
        ),
    ],
)
def test_bad_options(cards: list[TaskCard], options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Factored(END, cards, **options)
