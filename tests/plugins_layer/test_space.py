from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aang_core import (
    AmbiguousNameError,
    ConfigError,
    Primitive,
    Registry,
    Space,
    UnknownNameError,
    load_plugins,
    load_space,
)
from tests.plugins_layer.made_up import one_of_each, origin, primitive, space_entry
from tests.plugins_layer.on_disk import PREAMBLE, Site
from tests.support.runs import TrainConfig, resolve_config, resolve_training

SMALL = {"data": ["a"], "transform": ["b"], "representation": ["c"], "output": ["d"]}


@pytest.fixture(scope="module")
def installed() -> Registry:
    return load_plugins(environ={}).registry


def made(source: Mapping[str, Any] | Path, *more: Primitive) -> Space:
    registry = Registry([*one_of_each(), *more, space_entry("mine", source)])
    return load_space("mine", registry)


@pytest.mark.parametrize(("name", "legal", "all_"), [("td", 24, 32), ("td+ed", 40, 64)])
def test_the_spaces_of_the_paper(name: str, legal: int, all_: int, installed: Registry) -> None:
    """AANG, section 6, with the illegal combinations left out."""
    space = load_space(name, installed)
    assert len(space.objectives) == legal
    assert len(space.combinations) == all_
    assert len(space.dropped) == all_ - legal


def test_sixteen_of_td_ed_are_over_in_domain_text(installed: Registry) -> None:
    names = [objective.name for objective in load_space("td+ed", installed).objectives]
    assert sum(name.startswith("s2orc/") for name in names) == 16
    assert {n for n in names if n.startswith("task/")} == {
        objective.name for objective in load_space("td", installed).objectives
    }


@pytest.mark.parametrize("name", ["td", "td+ed"])
def test_every_dropped_combination_has_a_reason_that_names_a_trait(
    name: str, installed: Registry
) -> None:
    for objective, reason in load_space(name, installed).dropped:
        assert objective.endswith("/end-task")
        assert "the output end-task requires" in reason
        assert "labels:end-task" in reason or "sentence-representation" in reason


def test_several_written_objectives_are_a_space_of_exactly_these(installed: Registry) -> None:
    names = ["task/mask/bidirectional/denoise", "task/bert-op/bidirectional/end-task"]
    space = load_space(",".join(names), installed)
    assert {objective.name for objective in space.objectives} == set(names)
    with pytest.raises(ConfigError, match="left-to-right/end-task: the output end-task requires"):
        load_space(f"{names[0]},task/mask/left-to-right/end-task", installed)


def test_objectives_come_in_the_order_of_the_lists(installed: Registry) -> None:
    names = [objective.name for objective in load_space("td", installed).objectives]
    assert names[:5] == [
        "task/bert-op/bidirectional/denoise",
        "task/bert-op/bidirectional/end-task",
        "task/bert-op/left-to-right/denoise",
        "task/bert-op/right-to-left/denoise",
        "task/bert-op/random-factorized/denoise",
    ]
    assert names[-1] == "task/no-op/random-factorized/end-task"


def test_what_else_is_installed_changes_no_space(site: Site) -> None:
    """A space lists its primitives by name."""
    before = {name: site.json("show-space", name) for name in ("td", "td+ed")}
    site.plugin(
        "aang-plugin-third",
        """
        @hookimpl
        def aang_register_data(register):
            register("web", "the web", "x:Y", provides=("text", "labels:end-task"))

        @hookimpl
        def aang_register_transforms(register):
            register("shuffle", "shuffle the tokens", "x:Y")

        @hookimpl
        def aang_register_outputs(register):
            register("count", "count the tokens", "x:Y")
        """,
    )
    assert site.primitives()["aang-plugin-third"] == ["web", "shuffle", "count"]
    assert {name: site.json("show-space", name) for name in ("td", "td+ed")} == before


STRANGER = origin("aang-plugin-stranger")


def test_a_stranger_who_takes_every_name_changes_no_space(site: Site) -> None:
    """Its plug-in registers ``mask`` and all other primitives of ours once more."""
    names = ("td", "td+ed", "full")
    before = {name: site.json("show-space", name) for name in names}
    source = ""
    for stage in ("data", "transform", "representation", "output", "weighter"):
        taken = [p.name for p in load_plugins(environ={}).registry.primitives(stage)]
        source += (
            f"@hookimpl\ndef aang_register_{stage}{'s' * (stage != 'data')}(register):\n"
            f"    for name in {taken}:\n        register(name, 'taken', 'x:Y')\n"
        )
    site.plugin("aang-plugin-stranger", source)
    assert "mask" in site.primitives()["aang-plugin-stranger"]
    assert {name: site.json("show-space", name) for name in names} == before
    assert not [row for row in site.json("list-spaces") if row["error"]]


def test_a_stranger_who_takes_every_name_changes_no_default_and_no_recipe() -> None:
    """Not even where it also registers spaces, objectives and recipes by our names."""
    ours = load_plugins(environ={}).registry
    entries = [*ours.primitives(), *ours.spaces, *ours.objectives, *ours.recipes, *ours.options]
    crowded = Registry([*entries, *(replace(entry, origin=STRANGER) for entry in entries)])
    _same_training(resolve_training({}, {}, crowded), crowded, resolve_training({}, {}, ours), ours)
    _same_training(resolve_config({}, {}, crowded), crowded, resolve_config({}, {}, ours), ours)
    for recipe in ours.recipes:
        full = f"{recipe.origin.distribution}:{recipe.name}"
        config = resolve_config({}, {"recipe": full}, crowded)
        before = resolve_config({}, {"recipe": recipe.name}, ours)
        _same_training(config, crowded, before, ours)


def _same_training(
    config: TrainConfig, registry: Registry, before: TrainConfig, then: Registry
) -> None:
    """Objectives, weighter and its options are those that the names meant before."""
    assert registry.weighter(config.weighter).origin == then.weighter(before.weighter).origin
    objectives = load_space(config.space, registry).objectives
    wanted = load_space(before.space, then).objectives
    assert [o.name for o in objectives] == [o.name for o in wanted]
    assert objectives == wanted
    given = {name.rpartition(":")[2]: options for name, options in config.set.items()}
    assert given == before.set
    names = {"recipe", "space", "weighter", "set"}
    assert config.model_dump(exclude=names) == before.model_dump(exclude=names)


def test_a_primitive_nobody_has_heard_of_combines_by_its_traits(site: Site) -> None:
    site.plugin(
        "aang-plugin-third",
        """
        @hookimpl
        def aang_register_representations(register):
            register("spiral", "round and round", "x:Y", provides=("directional",))

        @hookimpl
        def aang_register_outputs(register):
            register("next", "the next token", "x:Y", requires=("directional", "text"))

        @hookimpl
        def aang_register_spaces(register):
            register("third", "with the new ones", {
                "data": ["task", "s2orc"],
                "transform": ["mask"],
                "representation": ["bidirectional", "spiral", "left-to-right"],
                "output": ["next", "end-task"],
            })
        """,
    )
    shown = site.json("show-space", "third")
    assert shown["objectives"] == [
        "task/mask/bidirectional/end-task",
        "task/mask/spiral/next",
        "task/mask/left-to-right/next",
        "s2orc/mask/spiral/next",
        "s2orc/mask/left-to-right/next",
    ]
    assert len(shown["dropped"]) == 7


def test_a_misspelled_trait_is_noted() -> None:
    """The combinations are dropped, as others are; that nobody provides the trait is said too."""
    data = primitive("data", "e", provides="labels:end-task")
    strict = primitive("output", "strict", requires="labels:end-tsak")
    space = made({**SMALL, "output": ["d", "strict"]}, data, strict)
    assert [objective.name for objective in space.objectives] == ["a/b/c/d"]
    assert space.notes == (
        "the output strict requires labels:end-tsak, which nobody provides; did you mean "
        "labels:end-task?",
    )
    known = primitive("output", "strict", requires="labels:end-task")
    assert not made({**SMALL, "output": ["d", "strict"]}, data, known).notes


def test_a_misspelled_trait_is_told_to_people(site: Site) -> None:
    site.plugin(
        "aang-plugin-third",
        """
        @hookimpl
        def aang_register_outputs(register):
            register("count", "count the tokens", "x:Y", requires=("labels:end-tsak",))
        """,
    )
    sentence = "the output count requires labels:end-tsak"
    shown = site.aang("show-space", "task/mask/bidirectional/count")
    assert sentence in shown.stdout + shown.stderr
    done = site.aang("train", "--space", "task/mask/bidirectional/count")
    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_space_from_a_mapping() -> None:
    space = made(SMALL)
    assert (space.name, space.summary) == ("mine", "made up")
    assert [objective.name for objective in space.objectives] == ["a/b/c/d"]


def test_a_primitive_may_be_given_options() -> None:
    space = made({**SMALL, "representation": [{"c": {"pairs": 0.6}}]})
    (objective,) = space.objectives
    assert objective.representation.options == {"pairs": 0.6}
    assert objective.name == "a/b/c/d"
    assert hash(objective)


def test_two_plugins_primitives_of_one_name_may_stand_side_by_side() -> None:
    twin = primitive("transform", "b", distribution="aang-plugin-y")
    space = made({**SMALL, "transform": ["aang-plugin-x:b", "aang-plugin-y:b"]}, twin)
    assert [objective.name for objective in space.objectives] == [
        "a/aang-plugin-x:b/c/d",
        "a/aang-plugin-y:b/c/d",
    ]


def test_a_plugins_own_space_means_its_own_primitive(tmp_path: Path) -> None:
    """A user's file does not say which of the two it means."""
    twin = primitive("transform", "b", distribution="aang-plugin-y")
    (objective,) = made(SMALL, twin).objectives
    assert objective.name == "a/b/c/d"
    assert objective.transform.origin.distribution == "aang-plugin-x"
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ndata: [a]\ntransform: [b]\nrepresentation: [c]\noutput: [d]")
    with pytest.raises(AmbiguousNameError, match=r"mine\.yaml:3: the transform b is registered by"):
        load_space(path, Registry([*one_of_each(), twin]))


@pytest.mark.parametrize(
    "listed", [["b", "b"], ["b", {"b": {"rate": 1}}], ["b", "aang-plugin-x:b"]]
)
def test_a_primitive_cannot_be_listed_twice(listed: list[object]) -> None:
    """Weights are keyed by names, and the same objective twice would share one."""
    with pytest.raises(ConfigError, match=r"transform, 1: the transform \S*b is listed twice"):
        made({**SMALL, "transform": listed})


def test_an_excluded_combination_is_dropped_and_says_so() -> None:
    space = made(
        {**SMALL, "transform": ["b", "e"], "exclude": ["a/b/c/d"]}, primitive("transform", "e")
    )
    assert [objective.name for objective in space.objectives] == ["a/e/c/d"]
    assert space.dropped == (("a/b/c/d", "the space mine excludes it"),)


def test_excluding_what_is_illegal_anyway_keeps_the_better_reason() -> None:
    strict = primitive("output", "strict", requires="labels")
    space = made({**SMALL, "output": ["d", "strict"], "exclude": ["a/b/c/strict"]}, strict)
    assert "requires labels" in space.dropped[0].reason


def test_excluding_what_the_space_has_not_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"a/b/c/e is not a combination .* did you mean a/b/c/d\?"
    ):
        made({**SMALL, "exclude": ["a/b/c/e"]})


def test_an_unknown_primitive_says_where_it_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\ndata: [a]\ntransform:\n- b\n- mask\nrepresentation: [c]\noutput: [d]"
    )
    with pytest.raises(UnknownNameError) as caught:
        load_space(path, Registry(one_of_each()))
    assert str(caught.value).startswith(f"{path}:5: there is no transform mask")
    assert "pip install aang" in str(caught.value)


def test_a_file_is_a_space_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("name: mine\ndata: [a]\ntransform: [b]\nrepresentation: [c]\noutput: [d]")
    assert load_space(str(path), Registry(one_of_each())).name == "mine"


def test_a_space_of_a_local_plugin(site: Site) -> None:
    """A mapping and a file, from one hook."""
    (site.folder / "own.yaml").write_text(
        "name: own\ndata: [task]\ntransform: [mask]\nrepresentation: [bidirectional]\n"
        "output: [denoise]\n"
    )
    path = site.folder / "local.py"
    path.write_text(
        PREAMBLE
        + "from pathlib import Path\n"
        + "@hookimpl\n"
        + "def aang_register_spaces(register):\n"
        + "    register('own', 'a file', Path(__file__).with_name('own.yaml'))\n"
    )
    shown = site.json("--plugin", str(path), "show-space", "own")
    assert shown["objectives"] == ["task/mask/bidirectional/denoise"]
