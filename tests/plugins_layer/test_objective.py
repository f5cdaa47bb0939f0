import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aang_core import (
    STAGES,
    AmbiguousNameError,
    ConfigError,
    Objective,
    Primitive,
    Registry,
    UnknownNameError,
    load_plugins,
)
from tests.plugins_layer.made_up import one_of_each, origin, primitive
from tests.support.plugins import ObjectiveEntry


def objective(*primitives: Primitive) -> Objective:
    return Objective(*primitives)


def test_an_objective_is_named_after_its_primitives() -> None:
    made = objective(*one_of_each())
    assert made.name == str(made) == "a/b/c/d"
    assert made.factors == {
        "data": "a",
        "transform": "b",
        "representation": "c",
        "output": "d",
    }


def test_parsing_reads_the_name_back() -> None:
    registry = load_plugins(environ={}).registry
    chosen = [registry.primitives(stage) for stage in STAGES]
    for primitives in itertools.product(*chosen):
        made = Objective(*primitives)
        assert Objective.parse(made.name, registry) == made


def test_a_name_with_a_picked_plugin_is_read_back_too() -> None:
    twin = primitive("transform", "b", distribution="aang-plugin-y")
    registry = Registry([*one_of_each(), twin])
    made = Objective.parse("a/aang-plugin-y:b/c/d", registry)
    assert made.transform.origin.distribution == "aang-plugin-y"
    assert made.name == "a/aang-plugin-y:b/c/d"
    assert made.factors["transform"] == "aang-plugin-y:b"
    with pytest.raises(AmbiguousNameError):
        Objective.parse("a/b/c/d", registry)


def test_a_registered_name_stands_for_its_objective() -> None:
    registry = Registry([*one_of_each(), ObjectiveEntry("short", "s", origin(), ("a/b/c/d",))])
    assert Objective.parse("short", registry).name == "a/b/c/d"
    with pytest.raises(UnknownNameError, match=r"did you mean short\? .*; or write four names"):
        Objective.parse("shrt", registry)


@pytest.mark.parametrize("name", ["a/b/c", "a/b/c/d/e", "/"])
def test_an_objective_has_four_parts(name: str) -> None:
    with pytest.raises(ConfigError, match="needs 4, data/transform/representation/output"):
        Objective.parse(name, Registry(one_of_each()))


@pytest.mark.parametrize("name", ["a/b/c/", "///", "a/b/c/x", "d/c/b/a"])
def test_a_part_that_nobody_registered_is_unknown(name: str) -> None:
    with pytest.raises(UnknownNameError):
        Objective.parse(name, Registry(one_of_each()))


def test_without_requirements_everything_is_legal() -> None:
    made = objective(*one_of_each())
    assert made.legal
    assert made.missing == {}
    assert made.illegal_because is None


def test_the_reason_names_who_requires_what_and_who_does_not_provide_it() -> None:
    made = objective(
        primitive("data", "web", provides="text"),
        primitive("transform", "b"),
        primitive("representation", "c", requires="sorted"),
        primitive("output", "classify", requires="labels:end-task text one-sided"),
    )
    assert not made.legal
    assert made.missing == {
        "representation": {"sorted"},
        "output": {"labels:end-task", "one-sided"},
    }
    assert made.illegal_because == (
        "the representation c requires sorted, which web, b and classify do not provide; "
        "the output classify requires labels:end-task and one-sided, which web, b and c do not "
        "provide"
    )


traits = st.sets(st.sampled_from(["text", "directional", "labels:end-task", "x"]))


@settings(deadline=None)
@given(st.tuples(*[st.tuples(traits, traits)] * 4))
def test_legality_is_containment_and_nothing_else(
    declared: tuple[tuple[set[str], set[str]], ...],
) -> None:
    """All that is required is provided by some of the four, themselves included."""
    made = objective(
        *(
            primitive(stage, stage[0], provides=" ".join(gives), requires=" ".join(needs))
            for stage, (gives, needs) in zip(STAGES, declared, strict=True)
        )
    )
    provided = set().union(*(gives for gives, _ in declared))
    required = set().union(*(needs for _, needs in declared))
    assert made.legal == (required <= provided)
    assert (made.illegal_because is None) == made.legal
    assert set().union(*made.missing.values()) == required - provided
