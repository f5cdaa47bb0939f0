import json
from pathlib import Path

import pytest

from tests.plugins_layer.on_disk import Site

OWN = """\
name: own
data: [task]
transform: [mask]
representation: [bidirectional, left-to-right]
output: [end-task]
"""


@pytest.mark.parametrize(("name", "legal", "dropped"), [("td", 24, 8), ("td+ed", 40, 24)])
def test_show_space(name: str, legal: int, dropped: int, site: Site) -> None:
    shown = site.json("show-space", name)
    assert set(shown) == {"name", "objectives", "dropped", "notes"}
    assert shown["name"] == name
    assert len(shown["objectives"]) == len(set(shown["objectives"])) == legal
    assert len(shown["dropped"]) == dropped
    assert all(set(row) == {"objective", "reason"} and row["reason"] for row in shown["dropped"])
    for_people = site.aang("show-space", name).stdout
    assert f"{legal} objectives" in for_people
    for objective in [*shown["objectives"], *(row["objective"] for row in shown["dropped"])]:
        assert objective in for_people


def test_show_a_space_of_ones_own(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    assert site.json("show-space", str(path)) == {
        "name": "own",
        "objectives": ["task/mask/bidirectional/end-task"],
        "dropped": [
            {
                "objective": "task/mask/left-to-right/end-task",
                "reason": "the output end-task requires sentence-representation, which task, "
                "mask and left-to-right do not provide",
            }
        ],
        "notes": [],
    }


def test_a_mistake_in_a_space_is_one_line_with_file_and_line(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace("mask", "msk"))
    done = site.aang("show-space", str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"Error: {path}:3: there is no transform msk; did you mean mask?\n"


def test_debug_shows_where_an_error_was_raised(site: Site) -> None:
    done = site.aang("--debug", "show-space", "tdd")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert (
        "UnknownNameError: there is no space tdd; did you mean td or td+ed or td+ed+c?"
        in done.stderr
    )


def test_a_space_that_lacks_a_plugin_says_which_to_install_or_enable(site: Site) -> None:
    done = site.aang("--disable-plugin", "xlnet", "show-space", "td")
    assert done.returncode == 2
    assert "(aang-plugin-xlnet is disabled)" in done.stderr


def test_list_spaces(site: Site) -> None:
    counts = {row["name"]: row["objectives"] for row in site.json("list-spaces")}
    assert counts == {
        **{"td": 24, "td+ed": 40, "td-labels": 8, "x+y+z": 3, "full": 759},
        **{"td+c": 42, "td+ed+c": 66, "td+u": 56, "dapt+tapt": 2},
    }
    shown = site.aang("list-spaces").stdout
    assert "td+ed" in shown
    assert "40" in shown


def test_x_y_z_is_the_three_of_the_paper(site: Site) -> None:
    named = {row["name"]: row["objective"] for row in site.json("list-objectives", "--named")}
    wanted = {named[f"{name}-style"] for name in ("gpt", "xlnet", "bert")}
    assert set(site.json("show-space", "x+y+z")["objectives"]) == wanted


def test_full_has_every_primitive_of_the_standard_plugins(site: Site) -> None:
    """It reports what it drops; the user's own data is not among the standard primitives."""
    shown = site.json("show-space", "full")
    assert len(shown["objectives"]) + len(shown["dropped"]) == 6 * 8 * 4 * 10
    for stage, place in (("data", 0), ("transform", 1), ("representation", 2), ("output", 3)):
        standard = {row["name"] for row in site.json("list-primitives", "--stage", stage)}
        combined = [*shown["objectives"], *(d["objective"] for d in shown["dropped"])]
        assert {name.split("/")[place] for name in combined} == standard
    reasons = {d["objective"]: d["reason"] for d in shown["dropped"]}
    assert "labels:own" in reasons["task/mask/bidirectional/own-label"]


def test_list_spaces_goes_on_past_one_that_cannot_be_used(site: Site) -> None:
    rows = {row["name"]: row for row in site.json("--disable-plugin", "s2orc", "list-spaces")}
    assert rows["td"]["objectives"] == 24
    assert rows["td+ed"]["objectives"] is None
    assert "aang-plugin-s2orc is disabled" in rows["td+ed"]["error"]


def test_without_plugins_there_are_still_the_commands(site: Site) -> None:
    done = site.aang(
        "list-spaces", "--json", environ={"AANG_DISABLE_PLUGINS": "contrast,tartan,task,text"}
    )
    assert {row["distribution"] for row in json.loads(done.stdout)} == {"aang-core"}


def test_two_spaces_of_one_name_are_both_listed(site: Site) -> None:
    site.plugin(
        "aang-plugin-mine",
        """
        @hookimpl
        def aang_register_spaces(register):
            register("td", "another td", {
                "data": ["task"], "transform": ["mask"], "representation": ["bidirectional"],
                "output": ["denoise"],
            })
        """,
    )
    rows = site.json("list-spaces")
    assert [row["objectives"] for row in rows if row["name"] == "td"] == [24, 1]
    done = site.aang("show-space", "td")
    assert done.returncode == 2
    assert "aang-core:td, aang-plugin-mine:td" in done.stderr
    assert len(site.json("show-space", "aang-core:td")["objectives"]) == 24
