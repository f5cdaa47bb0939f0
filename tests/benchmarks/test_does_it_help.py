"""The plan of the table is made of comparisons that ``aang compare`` can run."""

import csv
import json
from pathlib import Path

import click
import pytest
import yaml
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.tables import Entry
from click.testing import CliRunner

from aang_core import load_plugins, load_space
from benchmarks.does_it_help import (
    ALL_PREPARED,
    ALONE_LABELLED,
    FEW,
    MEAN,
    SETTINGS,
    Part,
    Setting,
    Stage,
    asked_for,
    comparison,
    main,
    parts,
    still_to_train,
    with_earlier,
)
from benchmarks.joined_results import Outcome
from benchmarks.small_task import write_task
from benchmarks.table_methods import CHANGES, DEFAULTS, HALVED, METHODS, OBJECTIVES
from tests.support.runs import TrainConfig, resolve_config
from tests.support.spaces import DEFAULT_RECIPE

pytestmark = pytest.mark.release

REGISTRY = load_plugins(environ={}).registry


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "s2orc-domain").mkdir()
    for task in ("scierc", "acl-arc"):
        (tmp_path / "s2orc-domain" / f"{task}.1x.txt").write_text("A text.\n")
    return tmp_path


@pytest.mark.parametrize("part", [*parts()], ids=lambda part: f"{part.number}-{part.setting}")
def test_each_part_is_planned(part: Part, data: Path) -> None:
    """Each part names known options, and has a run for every method and draw."""
    file = data / "comparison.yaml"
    file.write_text(yaml.safe_dump(comparison(part, data, data, data)))
    plan = read_comparison(file, REGISTRY)
    assert len(plan.cells) == len(part.methods) * len(part.draws)
    assert {cell.config.precision for cell in plan.cells} == {"fp32"}
    assert {cell.config.steps for cell in plan.cells} == {SETTINGS[part.setting].steps}
    assert {cell.config.train_rows for cell in plan.cells} == {SETTINGS[part.setting].rows}


def test_a_table_can_be_made_in_half_precision(data: Path) -> None:
    part = next(parts())
    content = comparison(part, data, data, data, precision="bf16")
    assert content["options"]["precision"] == "bf16"


def test_the_settings_of_the_question_have_the_table() -> None:
    """And no method is defined that nothing trains."""
    trained = {
        name: {m for part in parts() if part.setting == name for m in part.methods}
        for name in SETTINGS
    }
    table = set(DEFAULTS) - {"aang-td-remembered-defaults", "aang-td-full-defaults", *MEAN}
    assert trained["scierc-500-unprepared-defaults"] == set(DEFAULTS)
    assert trained["acl-arc-500-unprepared-defaults"] == table | {"aang-td-full-defaults", *MEAN}
    for name in (*FEW, *ALL_PREPARED):
        assert trained[name] == table - {"contrast-48-defaults"}
    all_trained = {m for name in SETTINGS for m in trained[name]}
    assert all_trained | {HALVED[m] for m in all_trained if m in HALVED} >= set(METHODS)


def test_defaults_are_those_of_aang_train() -> None:
    """Every method with half of the rows has the rates and the length of plain ``aang train``."""
    own = {name: field.default for name, field in TrainConfig.model_fields.items()}
    for method in DEFAULTS.values():
        assert {
            name: method[name] for name in ("lr", "head_lr", "max_length")
        }.items() <= own.items()
    for name in ("single-task-defaults", "contrast-defaults"):
        assert DEFAULTS[name]["batch_size"] == own["batch_size"]


def test_what_is_best_has_a_recipe() -> None:
    """``--recipe tapt+contrast`` is what the table calls so."""
    options = DEFAULTS["tapt+contrast-defaults"]
    stage = options["set"]["tapt"]
    recipe = resolve_config({}, {"recipe": "tapt+contrast"}, REGISTRY)
    assert stage == {**recipe.set["tapt"], "batch_size": recipe.batch_size}
    given = {**options, "set": {**options["set"], "tapt": recipe.set["tapt"]}}
    measured = resolve_config({}, given, REGISTRY)
    assert measured.model_copy(update={"recipe": "tapt+contrast"}) == recipe.model_copy(
        update={name: options[name] for name in ("lr", "head_lr", "max_length")}
    )


def test_the_demo_is_trained_as_aang_train_does(data: Path) -> None:
    """The demo's own defaults, and bf16 on processors that have it."""
    part = next(part for part in parts() if part.setting == "demo-defaults")
    file = data / "comparison.yaml"
    file.write_text(yaml.safe_dump(comparison(part, data, data, data, "bf16")))
    plan = read_comparison(file, REGISTRY)
    trained = next(c.config for c in plan.cells if c.method == "contrast-defaults" and c.seed == 0)
    assert trained.model_copy(update={"precision": "auto"}) == resolve_config(
        {}, {"recipe": DEFAULT_RECIPE}, REGISTRY
    )


def test_every_objective_of_td_is_trained_alone() -> None:
    assert set(OBJECTIVES.values()) == {o.name for o in load_space("td", REGISTRY).objectives}
    last = [part for part in parts() if part.setting == "demo-alone"][-1]
    assert set(last.methods) == {"single-task", *OBJECTIVES}
    for setting in ALONE_LABELLED:
        last = [part for part in parts() if part.setting == setting][-1]
        assert set(last.methods) == {"single-task-defaults", *OBJECTIVES}
        assert last.draws == (0, 1, 2)


def test_two_methods_have_a_second_name_in_one_table() -> None:
    """Published tables have both names, so neither is changed; no other method has two."""
    second = {
        name: known for name in CHANGES for known in METHODS if CHANGES[name] == METHODS[known]
    }
    assert second == {"static": "static-td", "static-end-task": "static-td-labels"}


def test_a_part_trains_what_the_plan_counts() -> None:
    """Every run of a comparison is new or was trained by an earlier part, and is counted once."""
    trained: dict[str, set[tuple[str, int]]] = {name: set() for name in SETTINGS}
    for part in parts():
        runs = {(method, draw) for method in part.methods for draw in part.draws}
        assert SETTINGS[part.setting].baseline in part.methods
        assert len(runs - trained[part.setting]) == part.new
        trained[part.setting] |= runs


def test_what_is_known_is_not_trained_again(data: Path) -> None:
    """Methods that lack the same draws have a table together; without the baseline, no tests."""
    methods = ("single-task", "contrast", "contrast+views", "contrast-96")
    part = Part(7, "demo", methods, (0, 1, 2, 3, 4), 20, 1.0)
    assert still_to_train(part, data) == [part]
    (data / "demo").mkdir()
    known = [
        {"method": "single-task", "seeds": [0, 1, 2, 3, 4]},
        {"method": "contrast", "seeds": [0, 1, 2]},
        {"method": "contrast-96", "seeds": [0, 1, 2]},
    ]
    (data / "demo" / "table.json").write_text(json.dumps(known))
    left = still_to_train(part, data)
    assert [(p.methods, p.draws, p.folder) for p in left] == [
        (("contrast", "contrast-96"), (3, 4), "demo-3-4"),
        (("contrast+views",), (0, 1, 2, 3, 4), "demo"),
    ]
    file = data / "comparison.yaml"
    file.write_text(yaml.safe_dump(comparison(left[0], data, data, data)))
    plan = read_comparison(file, REGISTRY)
    assert plan.baseline is None
    assert [(cell.method, cell.seed) for cell in plan.cells] == [
        ("contrast", 3),
        ("contrast", 4),
        ("contrast-96", 3),
        ("contrast-96", 4),
    ]


def test_a_row_of_a_table_is_asked_for_alone() -> None:
    """In every part of the plan that trains it, without its baseline."""
    asked = asked_for("scierc-500-unprepared-defaults", ["tapt-defaults"], None)
    assert {(part.setting, part.methods) for part in asked} == {
        ("scierc-500-unprepared-defaults", ("tapt-defaults",))
    }
    with pytest.raises(click.UsageError, match="no method tapt, only aang-td-defaults, "):
        asked_for("scierc-500-unprepared-defaults", ["tapt"], None)


def test_the_plan_is_printed_with_its_hours(tmp_path: Path) -> None:
    folder = str(tmp_path)
    told = CliRunner().invoke(main, [folder, folder, folder, str(tmp_path / "out"), "--plan"])
    assert told.exit_code == 0, told.output
    assert (
        "| 1 | Does contrast help where all rows are labelled? | scierc-all | 3 | 6 |"
        in told.output
    )
    assert not (tmp_path / "out").exists()


def small_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``scierc-all`` have two methods of a step of four rows."""
    plain = {"weighter": "single-task", "batch_size": 4}
    methods = {"single-task": plain, "contrast": {"recipe": "contrast", "batch_size": 4}}
    monkeypatch.setitem(
        SETTINGS, "scierc-all", Setting("scierc", None, prepared=True, steps=1, methods=methods)
    )


def trained(data: Path, out: Path, *options: str) -> dict[str, list[int]]:
    """The seeds of each method in the table of ``scierc-all`` after a call."""
    encoder = str(data / "scierc" / "encoder")
    folders = [str(data), encoder, encoder, str(out)]
    done = CliRunner().invoke(main, [*folders, "--setting", "scierc-all", *options])
    assert done.exit_code == 0, done.output
    table = json.loads((out / "tables" / "scierc-all" / "table.json").read_text())
    return {entry["method"]: entry["seeds"] for entry in table if not entry["quick"]}


def test_the_table_has_the_runs_of_all_stages_and_what_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two stages of real runs: one method with two draws, then another with one draw more."""
    write_task(tmp_path / "scierc")
    small_setting(monkeypatch)
    stages = (
        Stage("Does it train?", ["scierc-all"], ["single-task", "contrast"], 1),
        Stage("Over draws?", ["scierc-all"], ["single-task"], 2),
    )
    monkeypatch.setattr("benchmarks.does_it_help.STAGES", stages)

    everything = {"single-task": [0, 1], "contrast": [0]}
    assert trained(tmp_path, tmp_path / "out") == everything
    known = tmp_path / "known"
    (tmp_path / "out" / "tables").rename(known)
    table = json.loads((known / "scierc-all" / "table.json").read_text())
    kept = [{**e, "seeds": [0], **{k: e[k][:1] for k in ("dev", "test", "seconds")}} for e in table]
    (known / "scierc-all" / "table.json").write_text(json.dumps(kept))
    assert trained(tmp_path, tmp_path / "other", "--known", str(known)) == everything
    runs = {path.parent.name for path in tmp_path.glob("other/**/result.json")}
    assert runs == {"seed-1"}  # nothing that was known was trained again


def test_a_row_that_is_trained_alone_joins_the_rows_of_earlier_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that is stopped before a run has finished takes nothing from the table either."""
    write_task(tmp_path / "scierc")
    small_setting(monkeypatch)
    stages = (Stage("Does it train?", ["scierc-all"], ["single-task", "contrast"], 1),)
    monkeypatch.setattr("benchmarks.does_it_help.STAGES", stages)
    out = tmp_path / "out"

    assert trained(tmp_path, out, "--minutes", "0.0001") == {"single-task": [], "contrast": []}
    assert trained(tmp_path, out, "--method", "contrast") == {"single-task": [], "contrast": [0]}
    both = {"single-task": [0], "contrast": [0]}
    assert trained(tmp_path, out, "--method", "single-task") == both
    with (out / "tables" / "scierc-all" / "curves.csv").open(encoding="utf-8", newline="") as file:
        assert {line["method"] for line in csv.DictReader(file)} == both.keys()
    (out / "scierc-all" / "runs" / "scierc" / "contrast").rename(tmp_path / "elsewhere")
    assert trained(tmp_path, out, "--minutes", "0.0001") == both


def test_runs_of_this_call_replace_those_of_earlier_calls(tmp_path: Path) -> None:
    """Where a run was trained again, as with a newer version, its new score counts."""
    header = "task,method,setting,seed,step,seconds,rows,metric,dev\n"

    def outcome(**scores: dict[int, float]) -> Outcome:
        entries = [
            Entry("words", method, "macro-f1", [*of_seeds], dev, dev, "", 1, 0, dev)
            for method, of_seeds in scores.items()
            for dev in [list(of_seeds.values())]
        ]
        lines = [
            f"words,{method},,{seed},0,1.0,0,macro-f1,{score}\n"
            for method, of_seeds in scores.items()
            for seed, score in of_seeds.items()
        ]
        return Outcome(entries, list(csv.DictReader([header, *lines])))

    outcome(plain={0: 0.5, 1: 0.6}, other={0: 0.7}).write(tmp_path, "plain")
    whole = with_earlier([outcome(plain={1: 0.8})], tmp_path, "plain")
    assert {e.method: dict(zip(e.seeds, e.test, strict=True)) for e in whole.entries} == {
        "plain": {0: 0.5, 1: 0.8},
        "other": {0: 0.7},
    }
    assert sorted((line["method"], line["seed"], line["dev"]) for line in whole.lines) == [
        ("other", "0", "0.7"),
        ("plain", "0", "0.5"),
        ("plain", "1", "0.8"),
    ]
