"""The cost model against counts and against what can be worked out by hand."""

import dataclasses

import pytest

from benchmarks.cost_model import Machine, Stream, cost_of, seconds, share
from benchmarks.step_cost import SIZES
from benchmarks.steps.measure import count_flops

pytestmark = pytest.mark.release


@pytest.mark.parametrize("n", [3, 24])
def test_its_arithmetic_is_what_a_step_does(n: int) -> None:
    """Heads of classes and the dev head are left out; in a larger model they are nothing."""
    setting = dataclasses.replace(SIZES["2x64"], n=n)
    denoising = {3: 1.0, 24: 2 / 3}[n]
    assert cost_of(setting, denoising).flops == pytest.approx(
        count_flops(setting, "stream"), rel=0.1
    )


def test_objectives_stay_whole() -> None:
    """With more processes than objectives some have none, and the longest share stops falling."""
    cost = dataclasses.replace(cost_of(SIZES["2x64"]), shared=1.0, objectives=1.0)
    assert share(cost, 8, 1) == 1.0
    assert share(cost, 8, 2) == 0.5
    assert share(cost, 8, 3) == pytest.approx((1 / 3 + 3 / 8) / 2)
    assert share(cost, 8, 64) == pytest.approx((1 / 64 + 1 / 8) / 2)


def test_messages_do_not_shrink() -> None:
    cost = dataclasses.replace(cost_of(SIZES["2x64"]), shared=8.0, objectives=0.0, gradient=10.0)
    machine = Machine(flops=2.0, bandwidth=5.0, latency=0.5)
    assert seconds(cost, 1, 1, machine) == (4.0, 0.0)
    assert seconds(cost, 1, 2, machine) == (2.0, 3 * (10.0 / 5.0 + 2 * 0.5))


def test_a_stream_costs_the_same_at_any_size() -> None:
    """A step and a resumption do not depend on how many shards there are; the pass does."""
    small = Stream(size=1000.0, shard=100.0, text=2.0, reading=0.5, tokenising=4.0, skipping=0.25)
    large = dataclasses.replace(small, size=10_000.0)
    assert small.seconds(8) == large.seconds(8) == 8 * 4.5
    assert small.seconds(8, cores=4) == 8 * 1.5
    assert small.going_on() == large.going_on() == 4 * 50 * 0.25
    assert small.position == large.position
    assert (small.shards, large.shards) == (10, 100)
    assert (small.steps(5), large.steps(5)) == (100, 1000)
