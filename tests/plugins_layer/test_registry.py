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
from tests.support.plugins import ObjectiveEntry, standard_plugins


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
    registry = Registry([primitive("transform", name) for name in ("swap", "shuffle")])
    with pytest.raises(UnknownNameError, match=r"it is one of: shuffle, swap$"):
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


def test_an_unknown_name_names_the_standard_plugins_that_are_not_installed() -> None:
    here = [primitive("weighter", "mine", distribution=name) for name in standard_plugins()]
    assert len(here) > 20
    with pytest.raises(UnknownNameError, match=r"; did you mean mine\?$"):
        Registry(here).weighter("mien")
    absent = here.pop().origin.distribution
    with pytest.raises(UnknownNameError) as caught:
        Registry(here).weighter("mien")
    told = f"{absent} is not installed: pip install aang"
    assert str(caught.value).endswith(f"did you mean mine? ({told})")
    with pytest.raises(UnknownNameError) as caught:
        Registry(here).weighter(f"{absent}:mine")
    assert str(caught.value) == f"there is no weighter {absent}:mine: {told}"


def test_an_unknown_name_names_the_plugins_that_are_not_loaded() -> None:
    registry = Registry(unavailable={"aang-plugin-xlnet": "broken"})
    with pytest.raises(UnknownNameError) as caught:
        registry.primitive("representation", "random-factorized")
    assert "(aang-plugin-xlnet is broken; " in str(caught.value)


@pytest.mark.parametrize("name", ["", ":", "a:", ":a", "/", "a:b:c"])
def test_odd_names_are_unknown_names(name: str) -> None:
    with pytest.raises(UnknownNameError):
        Registry([primitive("transform", "a")]).primitive("transform", name + "?")


def test_weighters_spaces_and_objectives_are_found_alike() -> None:
    weighter = primitive("weighter", "even")
    space = space_entry("small", {})
    named = ObjectiveEntry("tapt", "adapts", origin(), ("task/bert-op/bidirectional/denoise",))
    registry = Registry([weighter, space, named])
    assert registry.weighter("even") is weighter
    assert registry.spaces.find("small") is space
    assert registry.spaces.find("aang-plugin-x:small") is space
    assert registry.objectives.find("tapt") is named
    with pytest.raises(UnknownNameError, match=r"no space smal; did you mean small\?"):
        registry.spaces.find("smal")
    with pytest.raises(UnknownNameError, match=r"no weighter evn; did you mean even\?"):
        registry.weighter("evn")


def test_no_two_standard_plugins_own_a_name() -> None:
    """Otherwise a space that lists it would mean neither."""
    registry = load_plugins(environ={}).registry
    names = [
        *((primitive.stage, primitive.name) for primitive in registry.primitives()),
        *(("space", entry.name) for entry in registry.spaces),
        *(("objective", entry.name) for entry in registry.objectives),
        *(("recipe", entry.name) for entry in registry.recipes),
        *(("grid", entry.name) for entry in registry.grids),
        *(("command", entry.name) for entry in registry.commands),
    ]
    assert len(names) == len(set(names))


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


def test_short_names_mean_what_their_author_means(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own, or that of a standard plug-in, or of one that it requires; never a stranger's."""
    monkeypatch.syspath_prepend(site.folder)
    site.metadata("aang-plugin-third", "", requires=["Aang_Plugin.other>=1"])
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
    assert owner("mine.py", "mask") == "aang-plugin-bert"
    assert owner("aang-plugin-third", "swirl") == "aang-plugin-other"
    assert registry.as_meant_by("aang-core").primitive("transform", "mask").key == "mask"
    assert owner("aang-plugin-third", "mask") == "aang-plugin-bert"
    why = "no transform swirl of mine.py or of a plug-in that it requires, and it cannot mean that"
    with pytest.raises(UnknownNameError, match=f"{why} of aang-plugin-other"):
        owner("mine.py", "swirl")
    assert owner("mine.py", "aang-plugin-other:swirl") == "aang-plugin-other"


def test_a_stranger_does_not_stand_in_for_a_standard_plugin() -> None:
    """What a space means does not depend on who else is installed."""
    registry = Registry([primitive("transform", "mask", distribution="aang-plugin-other")])
    assert registry.primitive("transform", "mask").origin.distribution == "aang-plugin-other"
    core = registry.as_meant_by("aang-core")
    with pytest.raises(UnknownNameError, match="are not installed: pip install aang"):
        core.primitive("transform", "mask")
    # What the core means is written out for a user so that it finds no stranger's either.
    assert core.in_full("transform", "mask") == "aang-core:mask"
    with pytest.raises(UnknownNameError, match="there is no transform aang-plugin-bert:mask"):
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

    made = Primitive("a", "s", Origin("d", "1", "e"), "data", Unhashable(), options={"x": []})
    assert made in {made}
