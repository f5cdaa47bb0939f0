"""Controls that are given as much as another method: what a file may say, and what they get."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from aang_plugin_compare.cells import Cell, Comparison, matched
from aang_plugin_compare.curves import curves
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Ended, Runner, Runs
from aang_plugin_compare.tables import outcome

from aang_core import ConfigError, DataError, load_plugins
from tests.support.runs import TrainConfig

REGISTRY = load_plugins(environ={}).registry
SPEC = """\
tasks: {a: {train: a.jsonl}, b: {train: b.jsonl, train-rows: 20}}
methods:
  plain: {weighter: single-task, batch-size: 16, set: {single-task: {}}}
  aang: {weighter: factored, set: {factored: {n: 2}}}
  compute: {as: plain, same-compute-as: aang}
  seconds: {as: plain, same_seconds_as: aang}
  faster: {as: aang, lr: 1e-3, batch_size: 4, set: {factored: {lr: 0.5}}}
seeds: [0, 3]
options: {steps: 400, train_rows: 40}
"""


def read(folder: Path, text: str = SPEC, train_rows: int | None = None) -> Comparison:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return read_comparison(path, REGISTRY, train_rows=train_rows)


def cell(comparison: Comparison, method: str, seed: int = 3) -> Cell:
    (found,) = (c for c in comparison.cells if (c.task, c.method, c.seed) == ("a", method, seed))
    return found


def took(
    root: Path,
    run: Path,
    *,
    steps: int,
    seconds: float,
    rows: int,
    stages: Sequence[tuple[float, int]] = (),
) -> None:
    """Write what a run took; stages of pre-training have seconds and rows of their own."""
    (root / run).mkdir(parents=True)
    result = {
        "metric": {"name": "accuracy", "dev": 0.5, "test": None},
        "majority": {"dev": 0.1, "test": None},
        **dict.fromkeys(("weighter", "space", "model"), "x"),
        **dict.fromkeys(("seed", "objectives", "best_step", "peak_memory_bytes"), 1),
        **{"steps": steps, "train_seconds": seconds, "body_rows": rows},
        "pretraining": {str(i): stage(*took) for i, took in enumerate(stages)},
    }
    (root / run / "result.json").write_text(json.dumps(result), encoding="utf-8")


def stage(seconds: float, rows: int) -> dict[str, Any]:
    """The result of a stage of pre-training."""
    return {
        "objective": "task/bert-op/bidirectional/denoise",
        **{"steps": 5, "best_step": 5, "train_seconds": seconds, "body_rows": rows},
        "log-likelihood": {"before": -2.0, "after": -1.0},
        "model": "pretraining/tapt/model",
    }


def test_a_method_like_another(tmp_path: Path) -> None:
    faster = cell(read(tmp_path), "faster").config
    assert (faster.weighter, faster.lr, faster.batch_size) == ("factored", 1e-3, 4)
    assert faster.set == {"factored": {"n": 2, "lr": 0.5}}


def test_as_many_rows_a_step(tmp_path: Path) -> None:
    control = cell(read(tmp_path), "compute")
    assert control.match is not None
    assert control.match.runs == [Path("runs/a/aang/seed-3")]
    took(tmp_path, control.match.of, steps=100, seconds=50.0, rows=9590)
    config = matched(control, tmp_path)
    assert config == control.config.model_copy(update={"batch_size": 96})


def test_as_many_rows_in_all_as_a_run_of_more_steps(tmp_path: Path) -> None:
    """The control may take 400 steps."""
    control = cell(read(tmp_path), "compute")
    assert control.match is not None
    took(tmp_path, control.match.of, steps=800, seconds=50.0, rows=400 * 60)
    assert matched(control, tmp_path).batch_size == 60


def test_as_many_seconds(tmp_path: Path) -> None:
    """90 seconds at a third of a second each."""
    control = cell(read(tmp_path), "seconds")
    assert control.match is not None
    assert control.match.runs == [Path("runs/a/aang/seed-3"), Path("runs/a/plain/seed-3")]
    took(tmp_path, Path("runs/a/aang/seed-3"), steps=100, seconds=90.0, rows=9600)
    took(tmp_path, Path("runs/a/plain/seed-3"), steps=60, seconds=20.0, rows=960)
    config = matched(control, tmp_path)
    assert config == control.config.model_copy(update={"steps": 270})


def test_as_many_seconds_of_a_run_that_stops_early(tmp_path: Path) -> None:
    """Its steps grow with those after which it stops, so that the schedule ends there as before."""
    plan = read(tmp_path, SPEC.replace("steps: 400", "steps: 400, stop-after: 100"))
    took(tmp_path, cell(plan, "aang").folder, steps=100, seconds=400.0, rows=6400)
    took(tmp_path, cell(plan, "plain").folder, steps=100, seconds=40.0, rows=1600)
    got = matched(cell(plan, "seconds"), tmp_path)
    assert (got.steps, got.stop_after, got.last_step) == (4000, 1000, 1000)


def test_what_a_method_takes_includes_its_pretraining(tmp_path: Path) -> None:
    """In the table, for the control that gets as much, and in the curves."""
    comparison = read(tmp_path)
    control = cell(comparison, "seconds")
    assert control.match is not None
    aang = Path("runs/a/aang/seed-3")
    took(tmp_path, aang, steps=100, seconds=90.0, rows=9600, stages=[(10.0, 400), (20.0, 2000)])
    took(tmp_path, Path("runs/a/plain/seed-3"), steps=60, seconds=20.0, rows=960)
    config = matched(control, tmp_path)
    # 120 seconds, at a third of a second each.
    assert config == control.config.model_copy(update={"steps": 360})
    rows = cell(comparison, "compute")
    assert rows.match is not None
    assert matched(rows, tmp_path).batch_size == 120
    (entry,) = (e for e in outcome(comparison, tmp_path) if (e.task, e.method) == ("a", "aang"))
    assert (entry.seconds, entry.rows) == ([120.0], 120)
    looked(tmp_path / aang, dev=0.25, seconds=3.5, rows=480)
    (point,) = (p for p in curves(comparison, tmp_path) if p.method == "aang")
    assert (point.dev, point.seconds, point.rows) == (0.25, 33.5, 2880)


def looked(run: Path, *, dev: float, seconds: float, rows: int) -> None:
    """Write an evaluation after five steps of the main training, and what these took."""
    (run / "config.yaml").write_text("{train: a.jsonl, metric: accuracy}\n", encoding="utf-8")
    lines = {"metrics": {"dev": {"accuracy": dev}}, "cost": {"seconds": seconds, "rows": rows}}
    for name, line in lines.items():
        text = json.dumps({"step": 5, **line}) + "\n"
        (run / f"{name}.jsonl").write_text(text, encoding="utf-8")


def test_what_has_not_run(tmp_path: Path) -> None:
    control = cell(read(tmp_path), "compute")
    assert control.match is not None
    with pytest.raises(ConfigError, match="a/aang/seed-3 takes, which has not finished"):
        matched(control, tmp_path)
    took(tmp_path, control.match.of, steps=0, seconds=1.0, rows=0)
    with pytest.raises(ConfigError, match="trained for no steps"):
        matched(control, tmp_path)
    (tmp_path / control.match.of / "result.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="is damaged"):
        matched(control, tmp_path)


class _Told:
    """A launcher that notes what it should train, and trains nothing."""

    at_once = 1

    def __init__(self) -> None:
        self.trained: list[str] = []

    def ready(self) -> None:
        pass

    def train(self, order: Order) -> str | None:
        self.trained.append(order.name)
        return None

    def end(self, order: Order) -> bool:
        return False

    def stop(self) -> None:
        pass


def write_config(root: Path, run: Path, config: TrainConfig) -> None:
    (root / run).mkdir(parents=True, exist_ok=True)
    recorded = yaml.safe_dump(config.model_dump(mode="json"))
    (root / run / "config.yaml").write_text(recorded, encoding="utf-8")


def test_a_run_of_other_options_is_told_before_anything_is_trained(tmp_path: Path) -> None:
    """Wherever it comes in the order of the runs."""
    comparison, root = read(tmp_path), tmp_path / "out"
    make_root(root)
    launcher = _Told()
    told: list[Ended] = []
    runner = Runner(Runs(root, launcher, REGISTRY), told.append)
    *_, last = [c for c in comparison.cells if c.match is None]
    write_config(root, last.folder, last.config.model_copy(update={"steps": 3}))
    with pytest.raises(ConfigError, match=f"{last.folder}: this run differs in steps"):
        runner.check(comparison.cells)
    assert (launcher.trained, told) == ([], [])


def test_a_matched_run_of_other_options_does_not_stop_the_others(tmp_path: Path) -> None:
    """What it should have had is only known when the run that it is matched with has finished."""
    comparison = read(tmp_path)
    control = cell(comparison, "compute")
    for matching in comparison.cells:
        took(tmp_path, matching.folder, steps=100, seconds=50.0, rows=9600)
    make_root(tmp_path)
    write_config(tmp_path, control.folder, control.config.model_copy(update={"batch_size": 7}))
    launcher = _Told()
    runs = Runs(tmp_path, launcher, REGISTRY)
    ended = Runner(runs, lambda ended: None).run(comparison.cells)
    (failed,) = [e for e in ended if e.error]
    assert failed.job.folder == control.folder
    assert "this run differs in batch_size" in str(failed.error)
    assert len(launcher.trained) == len(comparison.cells) - 1


def test_rows_for_all_methods(tmp_path: Path) -> None:
    """A task's number goes before the common one, and that of the command line before both."""
    rows = {c.task: c.config.train_rows for c in read(tmp_path).cells}
    assert rows == {"a": 40, "b": 20}
    assert {c.config.train_rows for c in read(tmp_path, train_rows=9).cells} == {9}


def test_what_a_draw_leaves_out_is_text_without_labels(tmp_path: Path) -> None:
    """For the methods that read it; each seed has a rest of its own."""
    rest = SPEC.replace("set: {factored: {n: 2}}", "space: td+u, unlabelled: rest")
    found = {c.method: c.config.unlabelled for c in read(tmp_path, rest).cells}
    assert found == {
        **dict.fromkeys(("plain", "compute", "seconds"), ()),
        **dict.fromkeys(("aang", "faster"), ("rest",)),
    }
    without = rest.replace(", train_rows: 40", "")
    with pytest.raises(ConfigError, match=r"spec.yaml:4: method aang on task a: --unlabelled rest"):
        read(tmp_path, without)
    assert {c.config.train_rows for c in read(tmp_path, without, train_rows=9).cells} == {9}


def test_text_that_a_method_names_itself_is_left_to_its_run(tmp_path: Path) -> None:
    """Which refuses what it does not read; a task's text goes to the methods that read it."""
    own = SPEC.replace("{as: plain, same-c", "{as: plain, unlabelled: rest, same-c")
    own = own.replace("{train: a.jsonl}", "{train: a.jsonl, domain: d.jsonl}")
    found = {c.method: c.config for c in read(tmp_path, own).cells if c.task == "a"}
    assert found["compute"].unlabelled == ("rest",)
    assert {config.domain for config in found.values()} == {()}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("same-compute-as: aang", "same-compute-as: ang", ["spec.yaml:5", "did you mean aang"]),
        ("same-compute-as: aang", "same-compute-as: 3", ["spec.yaml:5", "valid string"]),
        ("same-compute-as: aang", "same-compute-as: compute", ["spec.yaml:5", "itself refers"]),
        ("same-compute-as: aang", "same-compute-as: seconds", ["spec.yaml:5", "itself refers"]),
        (
            "same-compute-as: aang",
            "same-compute-as: aang, same-seconds-as: aang",
            ["spec.yaml:5", "give one of them"],
        ),
        ("as: aang, lr", "as: faster, lr", ["spec.yaml:7", "itself refers"]),
        (
            "{as: plain, same_s",
            "{batch-size: 3, as: plain, same_s",
            ["spec.yaml:6", "same options"],
        ),
        ("steps: 400", "steps: 400, lr: -1", ["--lr"]),
        ("seeds:", "grid: {warmup: [0.1, 0]}\nseeds:", ["spec.yaml:5", "leave the grid out"]),
        ("batch-size: 16", "train-rows: 16", ["spec.yaml:3", "all methods train on the same rows"]),
        ("seeds:", "grid: {train_rows: [4, 8]}\nseeds:", ["same rows", "spec.yaml:8"]),
        ("batch-size: 16", "metric: accuracy", ["spec.yaml:3", "different metrics"]),
        ("seeds:", "grid: {test: [a.csv]}\nseeds:", ["scored on the same rows", "spec.yaml:8"]),
        (
            "seeds:",
            "grid: {meta-fraction: [0, 0.5]}\nseeds:",
            ["scored on the same rows", "spec.yaml:8"],
        ),
        ("batch-size: 16", "train-on-dev: true", ["spec.yaml:3", "trained on, would decide"]),
        ("seeds: [0, 3]", "seeds: [0, 3, 0]", ["spec.yaml:", "a seed is given twice"]),
        ("train_rows: 40", "train_rows: 0", ["spec.yaml:9", "--train-rows 0"]),
        ("  faster:", "  tf-idf:", ["spec.yaml:7", "is the name of a quick control"]),
    ],
)
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, said: list[str]
) -> None:
    assert old in SPEC
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, SPEC.replace(old, new, 1))
    for words in said:
        assert words in str(caught.value)
