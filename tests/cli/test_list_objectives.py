"""Named objectives, and all that can be made."""

import json

import pytest

from tests.plugins_layer.on_disk import Site

NAMED = {
    "bert": "out-of-domain/bert-op/bidirectional/denoise",
    "gpt": "out-of-domain/no-op/left-to-right/next-token",
    "elmo": (
        "out-of-domain/no-op/left-to-right/next-token"
        " + out-of-domain/no-op/right-to-left/next-token"
    ),
    "xlnet": "out-of-domain/no-op/random-factorized/next-token",
    "electra": "neural-lm/replace/bidirectional/real-synthetic",
    "tapt": "task/bert-op/bidirectional/denoise",
    "bert-style": "task/bert-op/bidirectional/denoise",
    "dapt": "s2orc/bert-op/bidirectional/denoise",
    "gpt-style": "task/no-op/left-to-right/denoise",
    "xlnet-style": "task/no-op/random-factorized/denoise",
    "contrast": "end-task-rows/no-op/bidirectional/supervised-contrast",
    "simcse": "task/no-op/bidirectional/simcse",
    "unlabelled": "unlabelled/bert-op/bidirectional/denoise",
}


def test_named_objectives_are_those_of_the_papers(site: Site) -> None:
    """Each stands for legal objectives, ELMo's for two (AANG, figure 1 and section 6)."""
    rows = site.json("list-objectives", "--named")
    assert {row["name"]: row["objective"] for row in rows} == NAMED
    assert not any(row["error"] for row in rows)
    shown = site.aang("list-objectives", "--named").stdout
    assert all(name in shown for name in NAMED)


@pytest.mark.parametrize("name", ["tapt", "task/bert-op/bidirectional/denoise"])
def test_an_objective_is_a_space_of_its_own(name: str, site: Site) -> None:
    """By its name, and by its four."""
    assert site.json("show-space", name)["objectives"] == ["task/bert-op/bidirectional/denoise"]


def test_a_name_of_two_objectives_is_a_space_of_both(site: Site) -> None:
    """And of nothing else, though their primitives may make more."""
    assert site.json("show-space", "elmo")["objectives"] == NAMED["elmo"].split(" + ")


def test_an_illegal_objective_is_dropped_with_its_reason(site: Site) -> None:
    """As in any space."""
    shown = site.json("show-space", "task/mask/left-to-right/end-task")
    assert shown["objectives"] == []
    assert "sentence-representation" in shown["dropped"][0]["reason"]


def test_all_objectives_are_the_legal_combinations(site: Site) -> None:
    """td's 24 and td+ed's 40 are among them, and whatever other outputs allow."""
    everything = set(site.json("list-objectives"))
    for space in ("td", "td+ed"):
        assert set(site.json("show-space", space)["objectives"]) <= everything
    assert "task/replace/bidirectional/real-synthetic" in everything
    assert "task/no-op/bidirectional/real-synthetic" not in everything
    assert len(site.aang("list-objectives").stdout.splitlines()) == len(everything)


def test_a_name_that_lacks_its_plugin_says_what_is_missing(site: Site) -> None:
    """The list still works."""
    done = site.aang("--disable-plugin", "bert", "list-objectives", "--named", "--json")
    rows = json.loads(done.stdout)
    errors = {row["name"]: str(row["error"]) for row in rows}
    assert set(errors) == set(NAMED) - {"tapt", "bert-style", "bert"}
    # Those that end in next-token need nothing of BERT's.
    whole = {"gpt", "elmo", "xlnet"}
    assert all(("aang-plugin-bert is disabled" in errors[n]) != (n in whole) for n in errors)
