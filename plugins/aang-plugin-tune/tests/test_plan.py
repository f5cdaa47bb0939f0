"""Planning: everything that is wrong is said before anything runs."""

from pathlib import Path

import pytest
import yaml
from aang_plugin_tune.plan import plan
from aang_plugin_tune.search import Search

from aang_core import AangError, ConfigError, Registry, load_plugins


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_plugins().registry


def planned(registry: Registry, *searched: str, **more: object) -> Search:
    return plan(registry, searched=searched, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("searched", "more", "told"),
    [
        ((), {}, "there is nothing to search"),
        (("lr=1e-4",), {}, "there is nothing to search"),
        ((), {"methods": ["contrast"]}, "there is nothing to search"),
        (("lrr=1,2",), {}, "aang train has no option 'lrr'"),
        (("lr",), {}, "--search lr: give NAME=…"),
        (("lr=1,2", "lr=3,4"), {}, "lr is searched twice"),
        (("lr=fast,slow",), {}, "lr=fast: --lr 'fast': input should be a valid number"),
        (("lr=-1..1",), {}, "lr=-1: --lr -1: input should be greater than 0"),
        (("steps=1..2.5",), {}, "--steps 1.75"),
        (("seed=0,1",), {}, "seed cannot be searched: the best seed on dev is luck"),
        (("test=a,b",), {}, "test cannot be searched"),
        (("task-type=single-label,multi-label",), {}, "task_type cannot be searched: the settings"),
        (("push-to-hub=a,b",), {}, "push_to_hub cannot be searched: one run of several would be"),
        (("lr=1,2",), {"arguments": ["--push-to-hub", "me/x"]}, "--push-to-hub: one run of sev"),
        (
            ("lr=1e-4,1e-3",),
            {"arguments": ["--lr", "1e-4"]},
            "lr is searched, and has a fixed value",
        ),
        (
            ("factored.lr=0.1,1",),
            {"arguments": ["--weighter", "factored", "--set", "factored.lr=1"]},
            "factored.lr is searched, and has a fixed value",
        ),
        (("weighter=factored,factord",), {}, "there is no weighter factord"),
        (
            ("recipe=contrast,contrasts",),
            {},
            "there is no recipe contrasts; did you mean contrast or tapt+contrast?",
        ),
        (("space=td,tdd",), {"arguments": ["--weighter", "static"]}, "there is no space tdd"),
        (
            ("factored.lr=0.1,1",),
            {"arguments": ["--weighter", "static"]},
            "no run uses a primitive",
        ),
        (
            ("factored.lrr=0.1,1",),
            {"arguments": ["--weighter", "factored"]},
            "weighter factored has no",
        ),
        ((), {"grid": "paper-tt"}, "there is no grid paper-tt"),
        (
            ("lr=1e-5,1e-4",),
            {"grid": "paper-td", "arguments": ["--weighter", "factored"]},
            "lr is searched twice",
        ),
        ((), {"methods": ["contrast", "contrast"]}, "--method contrast: is given twice"),
        (("lr=1,2",), {"arguments": ["--out", "x"]}, "--out: "),
        (
            ("lr=1,2",),
            {"arguments": ["--steps", "3", "mine.yaml"]},
            "mine.yaml: is for aang train alone",
        ),
        (("lr=1,2",), {"arguments": ["--train-on-dev"]}, "--train-on-dev: a search chooses by"),
        (("lr=1,2",), {"arguments": ["--dry-run"]}, "--dry-run: "),
        (("lr=1,2",), {"arguments": ["--resume", "runs/a"]}, "--resume: "),
        (
            ("lr=1e-5,1e-4",),
            {"arguments": ["--train", "a.csv", "--test", "gone.csv"]},
            "--test gone.csv: there is no such file",
        ),
    ],
)
def test_what_is_refused(
    registry: Registry, searched: tuple[str, ...], more: dict[str, object], told: str
) -> None:
    with pytest.raises(AangError) as refused:
        planned(registry, *searched, **more)
    assert told in str(refused.value)


def test_the_weighter_that_the_default_recipe_gives_way_to_is_searched(registry: Registry) -> None:
    search = planned(registry, "factored.lr=0.1,1", arguments=["--task-type", "multi-label"])
    assert search.listed() == [{"factored.lr": 0.1}, {"factored.lr": 1}]
    for option in ("static.end_task_weight", "supervised-contrast.lr"):
        with pytest.raises(ConfigError, match="no run uses a primitive or weighter"):
            planned(registry, f"{option}=0.1,1", arguments=["--task-type", "multi-label"])


def test_options_of_a_weighter_are_searched_where_it_is_used(registry: Registry) -> None:
    search = planned(
        registry, "factored.lr=0.1,1", "lr=1e-5,1e-4", methods=["single-task", "factored"]
    )
    listed = search.listed()
    assert listed is not None
    assert len(listed) == 2 + 4
    names = {setting["method"]: set(setting) for setting in listed}
    assert names["single-task"] == {"method", "lr"}
    assert names["factored"] == {"method", "lr", "factored.lr"}
    best = search.config({"method": "factored", "lr": 1e-5, "factored.lr": 0.1})
    assert (best.weighter, best.lr, best.set) == ("factored", 1e-5, {"factored": {"lr": 0.1}})


def test_options_of_a_primitive_are_searched_where_it_is_trained(registry: Registry) -> None:
    search = planned(registry, "mask.rate=0.1,0.2", methods=["single-task", "static"])
    assert search.listed() == [
        {"method": "single-task"},
        {"method": "static", "mask.rate": 0.1},
        {"method": "static", "mask.rate": 0.2},
    ]
    with pytest.raises(ConfigError, match="no run uses a primitive or weighter 'mask'"):
        planned(registry, "mask.rate=0.1,0.2", methods=["single-task"])


def test_a_registered_grid(registry: Registry) -> None:
    listed = planned(registry, grid="paper-td", arguments=["--weighter", "factored"]).listed()
    assert listed is not None
    assert len(listed) == 16


def test_whole_recipes_are_values(registry: Registry) -> None:
    search = planned(registry, "recipe=contrast,aang-td")
    assert [search.method(chosen) for chosen in search.methods_chosen()] == ["contrast", "aang-td"]
    search = planned(registry, "weighter=static,factored", "space=td,bert-style")
    names = {search.method(chosen) for chosen in search.methods_chosen()}
    assert names == {"td static", "td factored", "bert-style static", "bert-style factored"}


def test_no_trial_names_test_data(registry: Registry, tmp_path: Path) -> None:
    """Neither that of the end task nor that of another task that is trained for."""
    for name in ("test.csv", "other.csv"):
        (tmp_path / name).write_text("text,label\n")
    search = planned(
        registry,
        "lr=1e-5,1e-4",
        arguments=[
            *("--train", "train.csv", "--test", str(tmp_path / "test.csv"), "--target", "other"),
            *("--aux-task", "other=o.csv", "--set", f"other.test={tmp_path / 'other.csv'}"),
        ],
    )
    trial = search.config({"lr": 1e-5})
    assert (trial.test, trial.test_score, trial.set) == (None, False, {"other": {}})
    refit = search.config({"lr": 1e-5}, test=True, seed=3)
    assert (refit.test, refit.test_score, refit.seed) == (tmp_path / "test.csv", True, 3)
    assert refit.set["other"]["test"] == str(tmp_path / "other.csv")


def test_a_file(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    content = {
        "methods": {"plain": {"weighter": "single-task"}, "equal": {"weighter": "static"}},
        "search": {"lr": "1e-5..1e-3:log", "batch-size": [8, 16]},
        "options": {"max-length": 16, "set": {"static": {"n": 3}}},
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    search = plan(registry, file=path, searched=["head-lr=1e-4,1e-3"])
    assert list(search.dimensions) == ["lr", "batch_size", "head_lr"]
    assert search.listed() is None
    setting = {"method": "equal", "lr": 1e-4, "batch_size": 8, "head_lr": 1e-3}
    config = search.config(setting)
    assert (config.max_length, config.batch_size, config.set) == (16, 8, {"static": {"n": 3}})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("serch: {}\n", "1: serch: there is no such key; did you mean search?"),
        ("[1]\n", "give the keys methods, search, grid, options"),
        ("search: {lr: 3..1}\n", ":1: search lr: 3 is not less than 1"),
        ("options: {trust-remote-code: true}\n", "cannot be asked for in a file"),
        ("methods: {a: {seed: 1}, b: {}}\n", "seed: the best seed on dev is luck"),
        ("methods: {a: {text-pair: other}, b: {}}\n", "text_pair: the settings would be scored"),
        ("methods: {a: {task-type: multi-label}, b: {}}\n", "task_type: the settings would be"),
        ("methods: {a: {push-to-hub: me/x}, b: {}}\n", "push_to_hub: one run of several"),
        ("options: {hub-private: true}\n", "--hub-private: one run of several"),
        ("options: {set: 3}\n", "set: give options by name"),
    ],
)
def test_a_file_that_is_wrong(registry: Registry, tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(content)
    with pytest.raises(AangError) as refused:
        plan(registry, file=path)
    assert told in str(refused.value)
