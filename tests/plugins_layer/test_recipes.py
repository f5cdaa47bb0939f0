"""Recipes are registered by plug-ins, and a training takes their options."""

from dataclasses import replace
from typing import Any

import pytest

from aang_core import AmbiguousNameError, PluginError, Registry, UnknownNameError, load_plugins
from tests.plugins_layer.made_up import origin
from tests.plugins_layer.on_disk import Site
from tests.support.plugins import RecipeEntry
from tests.support.runs import resolve_config, resolve_training


def recipe(name: str, distribution: str = "aang-plugin-x", **options: Any) -> RecipeEntry:
    return RecipeEntry(name, "made up", origin(distribution), (), options)


def test_a_recipe_of_a_plugin_sets_options_that_the_user_overrides() -> None:
    registry = Registry([recipe("fast", steps=7, lr=0.5, set={"static": {"n": 2}})])
    given = {"recipe": "fast", "weighter": "static", "lr": 0.1}
    config = resolve_config({}, given, registry)
    assert (config.steps, config.lr, config.set) == (7, 0.1, {"static": {"n": 2}})
    assert resolve_config({}, {**given, "recipe": "aang-plugin-x:fast"}, registry).steps == 7


def test_what_a_recipe_sets_for_its_stages_stays_with_another_weighter() -> None:
    """Stages come before whatever follows; the user's own options of them win, too."""
    options = {"set": {"static": {"n": 2}, "tapt": {"steps": 7, "lr": 0.5}}}
    made = RecipeEntry("staged", "made up", origin("aang-plugin-x"), ("tapt",), options)
    given = {"recipe": "staged", "weighter": "factored", "set": {"tapt": {"lr": 0.1}}}
    config = resolve_config({}, given, Registry([made]))
    assert config.set == {"tapt": {"steps": 7, "lr": 0.1}}


def test_what_a_recipe_sets_for_primitives_goes_with_its_space() -> None:
    """Another space would not use them, and the run would be refused."""
    masking = {"mask": {"probability": 0.3}}
    registry = load_plugins().registry
    spaced = Registry([*registry.primitives(), recipe("spaced", space="td", set=masking)])
    assert resolve_config({}, {"recipe": "spaced"}, spaced).set == masking
    assert resolve_config({}, {"recipe": "spaced", "space": "td"}, spaced).set == masking
    own = {"mask": {"probability": 0.5}}
    assert resolve_config({}, {"recipe": "spaced", "set": own}, spaced).set == own
    assert resolve_config({}, {"recipe": "spaced", "space": "td-labels"}, spaced).set == {}
    # Without a space of its own, it sets them for its stages, whatever follows.
    stages = RecipeEntry("stages", "made up", origin("aang-plugin-x"), ("tapt",), {"set": masking})
    staged = Registry([*registry.primitives(), stages])
    assert resolve_config({}, {"recipe": "stages", "space": "td"}, staged).set == masking


def test_what_a_recipe_sets_for_a_primitive_is_of_the_one_that_it_means() -> None:
    """Another plug-in has a primitive of the same name, so the recipe's gets its full one."""
    registry = load_plugins().registry
    theirs = replace(registry.primitive("transform", "mask"), origin=origin("aang-plugin-y"))
    masks = recipe("masks", "aang-plugin-y", set={"mask": {"probability": 0.3}})
    both = Registry([*registry.primitives(), theirs, masks])
    config = resolve_config({}, {"recipe": "masks"}, both)
    assert config.set == {"aang-plugin-y:mask": {"probability": 0.3}}


def test_a_user_may_write_the_names_of_a_recipe_in_full() -> None:
    registry = load_plugins().registry
    masking = {"mask": {"probability": 0.3}}
    made = recipe("made", space="td", weighter="static", set={**masking, "static": {"n": 2}})
    whole = Registry([*registry.primitives(), *registry.spaces, made])
    space, weighter = "aang-core:td", "aang-plugin-tartan:static"
    config = resolve_config({}, {"recipe": "made", "space": space, "weighter": weighter}, whole)
    assert (config.space, config.weighter) == (space, weighter)
    # A run looks for what is set for a weighter under the name by which the user chose it.
    assert config.set == {**masking, weighter: {"n": 2}}
    other = {"recipe": "made", "weighter": "aang-plugin-tartan:meta-tartan"}
    assert resolve_config({}, other, whole).set == masking


def test_a_recipe_that_two_plugins_own_is_ambiguous() -> None:
    registry = Registry([recipe("fast", "aang-plugin-a"), recipe("fast", "aang-plugin-b")])
    assert "fast" in registry.recipes
    assert "aang-plugin-b:fast" in registry.recipes
    assert "aang-plugin-c:fast" not in registry.recipes
    with pytest.raises(AmbiguousNameError, match="aang-plugin-a:fast, aang-plugin-b:fast"):
        registry.recipes.find("fast")


def test_a_recipe_that_sets_what_is_no_option_is_the_plugins_fault() -> None:
    with pytest.raises(
        PluginError, match=r"recipe fast of aang-plugin-x 1\.0: it sets stpes, which"
    ):
        resolve_config({}, {"recipe": "fast"}, Registry([recipe("fast", stpes=7)]))


def test_an_unknown_recipe_gets_near_ones_offered_or_its_plugin() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no recipe fsat; did you mean fast\?"):
        resolve_config({}, {"recipe": "fsat"}, Registry([recipe("fast")]))
    with pytest.raises(UnknownNameError, match=r"aang-plugin-factored, .* are not installed"):
        resolve_config({}, {"recipe": "aang-td"}, Registry())


def test_the_default_says_what_to_install_and_what_else_can_be_given() -> None:
    with pytest.raises(UnknownNameError, match=r"aang-plugin-contrast is not installed") as caught:
        resolve_training({}, {}, Registry())
    assert "--recipe, or --space and --weighter, choose something else" in str(caught.value)


def test_the_help_lists_the_recipes_of_all_plugins(site: Site) -> None:
    site.plugin(
        "aang-plugin-mine",
        """
        @hookimpl
        def aang_register_recipes(register):
            register("mine", "a recipe of somebody else's", options={"steps": 3})
        """,
    )
    shown = site.aang("train", "--help-all")
    assert shown.returncode == 0, shown.stderr
    recipes = shown.stdout.partition("Recipes:")[2]
    assert "a recipe of somebody else's" in recipes
    assert "dapt+tapt" in recipes
