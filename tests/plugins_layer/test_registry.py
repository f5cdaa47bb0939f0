import pytest

from aang_core import (
    STAGES,
    AmbiguousNameError,
    Origin,
    Primitive,
    Registry,
    Stage,
    UnknownNameError,
    did_you_mean,
    load_plugins,
)
from tests.plugins_layer.made_up import origin, primitive, space_entry
from tests.plugins_layer.on_disk import Site, transform
from tests.support.plugins import (
    STANDARD,
    STANDARD_OBJECTIVES,
    STANDARD_RECIPES,
    STANDARD_SPACES,
    ObjectiveEntry,
)


def test_a_primitive_is_found_by_its_stage_and_name() -> None:
    mask, other = primitive("transform", "mask"), primitive("output", "mask")
    registry = Registry([mask, other])
    assert registry.primitive("transform", "mask") is mask
    assert registry.primitive("output", "mask") is other


def test_primitives_come_in_the_order_of_the_stages_and_weighters_last() -> None:
    stages: list[Stage] = ["weighter", "output", "data", "representation", "transform"]
    registry = Registry([primitive(stage, "one") for stage in stages])
    assert [p.stage for p in registry.primitives()] == [*STAGES, "weighter"]
    assert [p.stage for p in registry.primitives("output")] == ["output"]


def test_a_name_that_two_plugins_own_is_ambiguous() -> None:
    """The message names both, in the form that picks one."""
    registry = Registry(
        [
            primitive("transform", "mask", distribution="aang-plugin-a"),
            primitive("transform", "mask", distribution="aang-plugin-b"),
        ]
    )
    with pytest.raises(AmbiguousNameError) as caught:
        registry.primitive("transform", "mask")
    assert "aang-plugin-a:mask, aang-plugin-b:mask" in str(caught.value)


def test_the_distribution_before_the_name_picks_one() -> None:
    """Weights and reports then use the long name, so that both can stand in one space."""
    registry = Registry(
        [
            primitive("transform", "mask", distribution="aang-plugin-a"),
            primitive("transform", "mask", distribution="aang-plugin-b"),
        ]
    )
    picked = registry.primitive("transform", "aang-plugin-b:mask")
    assert picked.origin.distribution == "aang-plugin-b"
    assert picked.key == "aang-plugin-b:mask"
    assert picked.name == "mask"


def test_an_unknown_name_gets_near_ones_offered() -> None:
    registry = Registry([primitive("transform", "shuffle"), primitive("output", "shuffled")])
    with pytest.raises(UnknownNameError, match=r"no transform shufle; did you mean shuffle\?"):
        registry.primitive("transform", "shufle")


def test_a_name_near_to_nothing_gets_them_all_listed() -> None:
    registry = Registry([primitive("transform", "shuffle")])
    with pytest.raises(UnknownNameError, match=r"bert-op, .*mask, .*replace, shuffle"):
        registry.primitive("transform", "zzzzzz")


def test_an_unknown_distribution_gets_near_ones_offered() -> None:
    registry = Registry([primitive("transform", "mask", distribution="aang-plugin-bert")])
    with pytest.raises(UnknownNameError, match=r"did you mean aang-plugin-bert:mask\?"):
        registry.primitive("transform", "aang-plugin-brt:mask")


def test_what_all_distributions_begin_with_makes_none_of_them_near() -> None:
    known = ["aang-plugin-hub", "aang-plugin-tune", "tune"]
    assert did_you_mean("aang-plugin-thin-out", known, "there are").startswith("there are: ")
    assert did_you_mean("aang-plugin-tnue", known, "there are") == "did you mean aang-plugin-tune?"
    assert did_you_mean("tnue", known, "there are") == "did you mean tune?"


@pytest.mark.parametrize(
    ("stage", "name", "distribution"),
    [(s, name, owner) for s, names in STANDARD.items() for name, owner in names.items()],
)
def test_a_standard_name_that_is_not_installed_names_what_to_install(
    stage: Stage, name: str, distribution: str
) -> None:
    with pytest.raises(UnknownNameError, match=f"pip install {distribution}"):
        Registry().primitive(stage, name)


def test_a_standard_name_whose_plugin_failed_does_not_advise_to_install_it() -> None:
    registry = Registry(unavailable={"aang-plugin-xlnet": "failed to load; see aang plugins"})
    with pytest.raises(UnknownNameError) as caught:
        registry.primitive("representation", "random-factorized")
    assert "aang-plugin-xlnet failed to load" in str(caught.value)
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize("name", ["", ":", "a:", ":a", "/", "a:b:c"])
def test_odd_names_are_unknown_names(name: str) -> None:
    with pytest.raises(UnknownNameError):
        Registry([primitive("transform", "a")]).primitive("transform", name + "?")


def test_weighters_spaces_and_objectives_are_found_alike() -> None:
    weighter = primitive("weighter", "even")
    space = space_entry("small", {})
    named = ObjectiveEntry("tapt", "adapts", ("task/bert-op/bidirectional/denoise",), origin())
    registry = Registry([weighter, space, named])
    assert registry.weighter("even") is weighter
    assert registry.spaces.find("small") is space
    assert registry.spaces.find("aang-plugin-x:small") is space
    assert registry.objectives.find("tapt") is named
    with pytest.raises(UnknownNameError, match=r"no space smal; did you mean small\?"):
        registry.spaces.find("smal")
    with pytest.raises(UnknownNameError, match=r"no weighter evn; did you mean even\?"):
        registry.weighter("evn")


def test_the_table_of_standard_names_is_what_the_standard_plugins_register() -> None:
    registered: dict[Stage, dict[str, str]] = {stage: {} for stage in (*STAGES, "weighter")}
    standard = {name for names in STANDARD.values() for name in names.values()}
    for found in load_plugins(environ={}).registry.primitives():
        if found.origin.distribution in standard:
            registered[found.stage][found.name] = found.origin.distribution
    assert registered == STANDARD


def test_the_tables_of_other_standard_names_are_what_the_standard_plugins_register() -> None:
    registry = load_plugins(environ={}).registry
    standard = {name for names in STANDARD.values() for name in names.values()}
    for entries, table in (
        (registry.recipes, STANDARD_RECIPES),
        (registry.spaces, STANDARD_SPACES),
        (registry.objectives, STANDARD_OBJECTIVES),
    ):
        registered = {e.name: e.origin.distribution for e in entries}
        assert {n: d for n, d in registered.items() if d in standard} == table


def test_what_is_registered_knows_where_it_came_from(site: Site) -> None:
    site.plugin("aang-plugin-mine", transform("mine"), version="7.1")
    (row,) = site.json("list-primitives", "--plugin", "mine")
    assert (row["distribution"], row["version"]) == ("aang-plugin-mine", "7.1")


def test_two_plugins_with_the_same_primitive_both_load(site: Site) -> None:
    """A user who writes the short name is asked which one is meant; spaces of plug-ins are not."""
    site.plugin("aang-plugin-other", transform("mask"))
    assert site.primitives()["aang-plugin-other"] == ["mask"]
    done = site.aang("show-space", "task/mask/bidirectional/denoise")
    assert done.returncode == 2
    assert "aang-plugin-bert:mask, aang-plugin-other:mask" in done.stderr
    (site.folder / "own.yaml").write_text(
        "name: own\ndata: [task]\ntransform: [mask]\nrepresentation: [bidirectional]\n"
        "output: [denoise]\n"
    )
    done = site.aang("show-space", "own.yaml")
    assert "own.yaml:3: the transform mask is registered by more than one plug-in" in done.stderr


def test_short_names_mean_what_their_author_means() -> None:
    """Its own, or the standard plug-in's, whoever else has the name; a stranger's if unclaimed."""
    registry = Registry(
        [
            primitive("transform", "mask", distribution=f"aang-plugin-{owner}")
            for owner in ("bert", "mine", "other")
        ]
        + [primitive("transform", "swirl", distribution="aang-plugin-other")]
    )

    def owner(author: str, name: str) -> str:
        return registry.as_meant_by(author).primitive("transform", name).origin.distribution

    assert owner("aang-core", "mask") == "aang-plugin-bert"
    assert owner("aang-plugin-mine", "mask") == "aang-plugin-mine"
    assert owner("aang-plugin-third", "mask") == "aang-plugin-bert"
    assert owner("aang-plugin-third", "swirl") == "aang-plugin-other"
    assert registry.as_meant_by("aang-core").primitive("transform", "mask").key == "mask"


def test_a_stranger_does_not_stand_in_for_a_standard_plugin() -> None:
    """What a space means does not depend on who else is installed."""
    registry = Registry([primitive("transform", "mask", distribution="aang-plugin-other")])
    assert registry.primitive("transform", "mask").origin.distribution == "aang-plugin-other"
    with pytest.raises(UnknownNameError, match="pip install aang-plugin-bert"):
        registry.as_meant_by("aang-core").primitive("transform", "mask")
    assert registry.as_meant_by("aang-core").in_full("transform", "mask") == (
        "aang-plugin-bert:mask"
    )
    with pytest.raises(UnknownNameError, match="pip install aang-plugin-bert"):
        registry.primitive("transform", "aang-plugin-bert:mask")


def test_a_full_name_is_shortened_only_where_nobody_else_has_the_short_one() -> None:
    alone = Registry([primitive("transform", "mask", distribution="aang-plugin-bert")])
    assert alone.in_full("transform", "aang-plugin-bert:mask") == "mask"
    assert alone.in_full("transform", "aang-plugin-other:mask") == "aang-plugin-other:mask"
    other = primitive("transform", "mask", distribution="aang-plugin-other")
    both = alone.with_primitives([other])
    assert both.in_full("transform", "aang-plugin-bert:mask") == "aang-plugin-bert:mask"


def test_primitives_are_hashable_whatever_their_target_and_options() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> None: ...

    made = Primitive(
        "data", "a", "s", Unhashable(), frozenset(), frozenset(), Origin("d", "1", "e"), {"x": []}
    )
    assert made in {made}
