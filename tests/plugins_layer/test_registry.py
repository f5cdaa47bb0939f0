import pytest

from aang_core.errors import AmbiguousNameError, UnknownNameError
from aang_core.plugins import load_plugins
from aang_core.plugins.primitive import STAGES, Origin, Primitive, Stage
from aang_core.plugins.registry import ObjectiveEntry, Registry
from aang_core.plugins.standard import STANDARD, STANDARD_RECIPES
from tests.plugins_layer.made_up import origin, primitive, space_entry
from tests.plugins_layer.on_disk import Site, transform


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
    with pytest.raises(UnknownNameError, match="bert-op, mask, replace, shuffle"):
        registry.primitive("transform", "zzzzzz")


def test_an_unknown_distribution_gets_near_ones_offered() -> None:
    registry = Registry([primitive("transform", "mask", distribution="aang-plugin-bert")])
    with pytest.raises(UnknownNameError, match=r"did you mean aang-plugin-bert:mask\?"):
        registry.primitive("transform", "aang-plugin-brt:mask")


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


def test_the_table_of_standard_recipes_is_what_the_standard_plugins_register() -> None:
    recipes = load_plugins(environ={}).registry.recipes
    standard = set(STANDARD_RECIPES.values())
    registered = {r.name: r.origin.distribution for r in recipes}
    assert {n: d for n, d in registered.items() if d in standard} == STANDARD_RECIPES


def test_what_is_registered_knows_where_it_came_from(site: Site) -> None:
    site.plugin("aang-plugin-mine", transform("mine"), version="7.1")
    (row,) = site.json("list-primitives", "--plugin", "mine")
    assert (row["distribution"], row["version"]) == ("aang-plugin-mine", "7.1")


def test_two_plugins_with_the_same_primitive_both_load(site: Site) -> None:
    """Only the use of the short name is an error."""
    site.plugin("aang-plugin-other", transform("mask"))
    assert site.primitives()["aang-plugin-other"] == ["mask"]
    done = site.aang("show-space", "td")
    assert done.returncode == 2
    assert "aang-plugin-bert:mask, aang-plugin-other:mask" in done.stderr
    assert "td.yaml:5" in done.stderr


def test_primitives_are_hashable_whatever_their_target_and_options() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> None: ...

    made = Primitive(
        "data", "a", "s", Unhashable(), frozenset(), frozenset(), Origin("d", "1", "e"), {"x": []}
    )
    assert made in {made}
