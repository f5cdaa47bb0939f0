"""Traits that seem to be misspelled."""

from aang_core import Registry, load_plugins
from tests.plugins_layer.made_up import primitive
from tests.support.plugins import misspelled_traits

OTHERS = [
    primitive("data", "task", provides="text labels:end-task", distribution="aang-plugin-a"),
    primitive("output", "label", requires="labels:end-task", distribution="aang-plugin-a"),
]


def test_a_trait_that_nobody_provides() -> None:
    mine = primitive("output", "mine", requires="text txet swirls")
    near, far = sorted(Registry([*OTHERS, mine]).unprovided_traits([mine]), reverse=True)
    assert near.endswith("requires txet, which nobody provides; did you mean text?")
    assert far.endswith(
        "requires swirls, which nobody provides; the traits that somebody provides "
        "are: labels:end-task, labels:own, text"
    )


def test_a_trait_that_the_plugin_itself_provides_is_well() -> None:
    mine = primitive("output", "mine", requires="swirls")
    data = primitive("data", "mine", provides="swirls")
    assert not Registry([*OTHERS, mine, data]).unprovided_traits([mine, data])


def test_a_trait_that_is_provided_under_a_name_like_anothers() -> None:
    """Nobody misses it, so the combinations that it should allow would be dropped silently."""
    mine = primitive("data", "mine", provides="text labels:end-tasks")
    assert misspelled_traits([mine], [*OTHERS, mine]) == [
        "the data mine provides labels:end-tasks, which nobody requires; did you mean "
        "labels:end-task?"
    ]
    used = primitive("output", "used", requires="labels:end-tasks")
    assert not misspelled_traits([mine], [*OTHERS, mine, used])
    new = primitive("data", "new", provides="spoken")
    assert not misspelled_traits([new], [*OTHERS, new])


def test_the_standard_plugins_spell_every_trait_alike() -> None:
    registry = load_plugins(environ={}).registry
    registered = registry.primitives()
    assert not registry.unprovided_traits(registered)
    for owner in {p.origin for p in registered}:
        assert not misspelled_traits([p for p in registered if p.origin == owner], registered)
