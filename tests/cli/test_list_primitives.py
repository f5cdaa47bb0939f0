import json

import pytest

from tests.plugins_layer.on_disk import Site, transform

KEYS = {"stage", "name", "summary", "provides", "requires", "distribution", "version"}


def test_the_standard_primitives_and_their_traits(site: Site) -> None:
    """The table that the spaces td and td+ed rest on."""
    rows = site.json("list-primitives")
    assert all(set(row) == KEYS for row in rows)
    traits = {
        (row["stage"], row["name"]): (row["provides"], row["requires"])
        for row in rows
        if row["stage"] != "weighter"
    }
    assert traits == {
        ("data", "task"): (["labels:end-task", "text"], []),
        ("data", "end-task-rows"): (
            ["labels:end-task", "rows-of-the-step", "text"],
            ["full-attention", "unchanged-input"],
        ),
        ("data", "unlabelled"): (["reads:unlabelled", "text"], []),
        ("data", "s2orc"): (["reads:domain", "text"], []),
        ("data", "out-of-domain"): (["reads:out-of-domain", "text"], []),
        ("data", "neural-lm"): (["text"], []),
        ("transform", "no-op"): (["unchanged-input"], []),
        ("transform", "mask"): (["masks-tokens"], []),
        ("transform", "replace"): (["replaces-tokens"], []),
        ("transform", "bert-op"): (["masks-tokens", "replaces-tokens"], []),
        ("transform", "noising-embeds"): (["noises-embeddings"], []),
        ("transform", "delete"): ([], []),
        ("transform", "permute-sentences"): ([], []),
        ("transform", "infill"): (["masks-tokens"], []),
        ("representation", "bidirectional"): (
            ["full-attention", "sentence-representation"],
            [],
        ),
        ("representation", "left-to-right"): (["directional", "reading-order"], []),
        ("representation", "right-to-left"): (["directional", "reading-order"], []),
        ("representation", "random-factorized"): (
            ["reading-order", "sentence-representation"],
            [],
        ),
        ("output", "denoise"): ([], ["text"]),
        ("output", "next-token"): ([], ["reading-order", "text"]),
        ("output", "real-synthetic"): ([], ["replaces-tokens", "text"]),
        ("output", "end-task"): (["end-task-head"], ["labels:end-task", "sentence-representation"]),
        ("output", "own-label"): ([], ["labels:own", "sentence-representation"]),
        ("output", "tf-idf"): ([], ["text"]),
        ("output", "supervised-contrast"): (
            [],
            ["end-task:single-label", "labels:end-task", "sentence-representation"],
        ),
        ("output", "simcse"): (["several-views"], ["sentence-representation", "text"]),
        ("output", "consistency"): (
            ["several-views"],
            ["end-task:single-label", "sentence-representation", "text"],
        ),
        ("output", "pseudo-label"): (
            ["several-views"],
            ["end-task:single-label", "sentence-representation", "text"],
        ),
    }


def test_the_version_is_the_distributions(site: Site) -> None:
    site.plugin("aang-plugin-mine", transform("mine"), version="3.2.1")
    (row,) = site.json("list-primitives", "--plugin", "mine")
    assert row == {
        "stage": "transform",
        "name": "mine",
        "summary": "a transform of somebody else's",
        "provides": [],
        "requires": [],
        "distribution": "aang-plugin-mine",
        "version": "3.2.1",
    }


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            ["--stage", "data"],
            ["neural-lm", "s2orc", "task", "end-task-rows", "unlabelled", "out-of-domain"],
        ),
        (["--stage", "output", "--plugin", "bert"], ["denoise"]),
        (["--plugin", "aang-plugin-xlnet"], ["random-factorized"]),
        (["--stage", "data", "--plugin", "gpt"], []),
        (
            ["--stage", "weighter"],
            [
                *("single-task", "alpha-vil", "diw", "uncertainty", "gradnorm", "dwa", "autosem"),
                *("factored-bandit", "factored", "forkmerge", "tapweight", "pcgrad", "cagrad"),
                *("static", "meta-tartan"),
            ],
        ),
    ],
)
def test_the_list_can_be_narrowed(arguments: list[str], names: list[str], site: Site) -> None:
    assert [row["name"] for row in site.json("list-primitives", *arguments)] == names


def test_a_stage_or_plugin_that_there_is_not(site: Site) -> None:
    assert (
        "'transforms' is not one of" in site.aang("list-primitives", "--stage", "transforms").stderr
    )
    done = site.aang("list-primitives", "--plugin", "xlnt")
    assert done.returncode == 2
    assert done.stderr == "Error: there is no plug-in xlnt; did you mean xlnet?\n"


def test_nothing_to_list_is_said_in_words(site: Site) -> None:
    assert site.aang("list-primitives", "--stage", "data", "--plugin", "gpt").stdout == (
        "There are no such primitives.\n"
    )


def test_into_a_pipe_every_primitive_is_one_line(site: Site) -> None:
    rows = site.json("list-primitives")
    header, *lines = site.aang("list-primitives").stdout.splitlines()
    assert header.split() == [
        "stage",
        "name",
        "summary",
        "provides",
        "requires",
        "distribution",
        "version",
    ]
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        for cell in (row["stage"], row["name"], row["summary"], row["distribution"]):
            assert cell in line


@pytest.mark.parametrize("columns", [1, 20, 60, 80, 120, 145, 200])
def test_at_any_width_no_word_is_lost_or_broken(columns: int, site: Site) -> None:
    rows = site.json("list-primitives")
    done = site.aang("list-primitives", environ={"COLUMNS": str(columns)})
    shown = done.stdout.split()
    for row in rows:
        for cell in (row["name"], row["summary"], ", ".join(row["requires"]), row["distribution"]):
            for word in cell.split():
                assert word in shown
    assert "…" not in done.stdout


def test_a_failed_plugin_is_told_in_the_footer_and_apart_from_json(site: Site) -> None:
    site.plugin("aang-plugin-bad", "import nowhere\n")
    told = "Plug-in bad (aang-plugin-bad 1.0) failed to load and registered nothing"
    done = site.aang("list-primitives")
    assert done.stdout.splitlines()[-1].startswith(told)
    assert told not in done.stderr
    done = site.aang("list-primitives", "--json")
    assert json.loads(done.stdout)
    assert done.stderr.startswith(told)


def test_what_looks_like_markup_is_shown_as_it_is(site: Site) -> None:
    site.plugin(
        "aang-plugin-mine",
        """
        @hookimpl
        def aang_register_transforms(register):
            register("mine", "[bold]keeps[/] :smile: $x → ü 中文", "a:b")
    """,
    )
    assert "[bold]keeps[/] :smile: $x → ü 中文" in site.aang("list-primitives").stdout
    for width in ("30", "180"):
        done = site.aang("list-primitives", environ={"PYTHONIOENCODING": "ascii", "COLUMNS": width})
        assert done.returncode == 0, done.stderr
        assert "[bold]keeps[/]" in done.stdout
