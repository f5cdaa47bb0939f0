"""Searches: what they propose, when they stop, and that a kill changes nothing.

The runs are those of a launcher that computes their dev scores from a formula.
"""

import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Runs
from aang_plugin_tune.dimensions import Dimension, read_dimension
from aang_plugin_tune.outcome import Outcome, rows_of, text_of
from aang_plugin_tune.refit import (
    Chosen,
    best_of,
    best_or_why_none,
    refit,
    refitted,
    refuse_longer,
)
from aang_plugin_tune.search import Search
from aang_plugin_tune.searcher import Searcher
from aang_plugin_tune.study import JOURNAL, Sampler, Study, Tried, claim_folder

from aang_core import ConfigError, DataError, Registry, load_plugins

from .trained import FormulaLauncher, options_of, score_of

ANY = float("inf")
FIXED = {"weighter": "single-task", "steps": 40, "eval_every": 10, "set": {}}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_plugins().registry


def search_over(
    registry: Registry, methods: Mapping[str, Mapping[str, Any]] | None = None, **texts: str
) -> Search:
    dimensions: dict[str, Dimension] = {n: read_dimension(t, n) for n, t in texts.items()}
    return Search(FIXED, methods or {}, dimensions, registry)


def searched(
    root: Path,
    search: Search,
    launcher: Any = None,
    *,
    runs: float = 12,
    seconds: float = ANY,
    sampler: Sampler = "tpe",
    prune_after: int | None = 4,
) -> list[Tried]:
    make_root(root)
    study = Study(root, search, sampler, 7, prune_after)
    starts = Runs(root, launcher or FormulaLauncher(), search.registry)
    Searcher(starts, search, study, lambda trial: None).run(runs=runs, seconds=seconds)
    return study.trials


def refitted_by(
    launcher: FormulaLauncher, root: Path, search: Search, chosen: Chosen, seeds: int
) -> None:
    refit(Runs(root, launcher, search.registry), search, chosen, seeds, lambda ended: None)


def test_it_finds_the_best_and_prunes_the_others(registry: Registry, tmp_path: Path) -> None:
    trials = searched(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), runs=30)
    assert [t.number for t in trials] == list(range(30))
    best = best_of(trials)
    assert best is not None
    assert 3e-5 < best.setting["lr"] < 3e-4
    assert best.score == pytest.approx(score_of(best.setting["lr"]))
    pruned = [t for t in trials if t.state == "pruned"]
    assert pruned
    # The first four runs finish, and none is judged by its first quarter.
    assert min(t.number for t in pruned) >= 4
    assert {t.step for t in pruned} == {10}
    assert all(t.score is not None and t.score < 0.9 / 4 for t in pruned)
    assert not any(
        t.state == "pruned"
        for t in searched(
            tmp_path / "all", search_over(registry, lr="1e-6..1e-1:log"), prune_after=None
        )
    )


def test_a_setting_proposed_again_is_no_run_to_prune_after(
    registry: Registry, tmp_path: Path
) -> None:
    """It has ended, but nothing has been trained that others can be compared with."""
    search = search_over(registry, lr="1e-4,1e-6,1e-3,1e-1,1e-5")
    trials = searched(tmp_path, search, runs=5, sampler="random", prune_after=4)
    runs = [t for t in trials if t.same_as is None]
    assert [t.setting["lr"] for t in runs] == [1e-3, 1e-5, 1e-4, 1e-6, 1e-1]
    # The fourth is below the median; a setting that was proposed again comes before it.
    assert runs[3].number > 3
    assert [t.state for t in runs] == ["finished"] * 4 + ["pruned"]


@pytest.mark.parametrize(("runs", "every"), [(6, 40), pytest.param(12, 9, marks=pytest.mark.full)])
@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_after_a_kill_it_goes_on_as_if_nothing_had_happened(
    registry: Registry, tmp_path: Path, sampler: Sampler, runs: int, every: int
) -> None:
    """Wherever its record ends: between two lines, or in the middle of one."""
    methods = {"plain": {"weighter": "single-task"}, "equal": {"weighter": "static"}}
    search = search_over(registry, methods, lr="1e-6..1e-2:log", batch_size="16,32")
    search = replace(search, options={k: v for k, v in FIXED.items() if k != "weighter"})
    options = {"sampler": sampler, "runs": runs, "prune_after": runs // 3}
    whole = searched(tmp_path / "whole", search, **options)
    record = (tmp_path / "whole" / JOURNAL).read_bytes()
    lines = [i + 1 for i, byte in enumerate(record) if byte == 10]
    assert len(lines) > 100 * runs / 12
    for end in [0, *(end + offset for end in lines[::every] for offset in (0, 20))]:
        root = tmp_path / "again"
        make_root(root)
        (root / JOURNAL).write_bytes(record[:end])
        (root / f"{JOURNAL}.lock").touch()
        assert searched(root, search, **options) == whole, end
        shutil.rmtree(root)


def test_an_interrupted_run_is_taken_up_again(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1e-6..1e-1:log")
    whole = searched(tmp_path / "whole", search)
    with pytest.raises(KeyboardInterrupt):
        searched(tmp_path / "again", search, FormulaLauncher(dies_at=3))
    launcher = FormulaLauncher()
    assert searched(tmp_path / "again", search, launcher) == whole
    assert launcher.trained[0] == "trial-2"


def test_a_larger_budget_goes_on(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1e-6..1e-1:log")
    whole = searched(tmp_path / "whole", search)
    few = searched(tmp_path / "again", search, runs=5)
    assert few == whole[:5]
    launcher = FormulaLauncher()
    assert searched(tmp_path / "again", search, launcher) == whole
    assert launcher.trained == [f"trial-{n}" for n in range(5, 12)]


def test_a_grid_is_tried_once_and_in_full(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1e-5,1e-4,1e-3", batch_size="16,32")
    trials = searched(tmp_path, search, sampler="grid", runs=100)
    assert len(trials) == 6
    assert len({json.dumps(t.setting) for t in trials}) == 6
    assert [t.setting for t in trials] != search.listed()


def test_a_setting_is_not_trained_twice(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sampler proposes some again; they cost nothing and end when nothing new comes."""
    launcher = FormulaLauncher()
    monkeypatch.setattr("aang_plugin_tune.searcher.MOST_REPEATS", 20)
    trials = searched(tmp_path, search_over(registry, lr="1e-5,1e-4"), launcher, runs=5)
    assert launcher.trained == ["trial-0", next(n for n in launcher.trained if n != "trial-0")]
    runs = [t for t in trials if t.same_as is None]
    assert len(runs) == 2
    assert len(trials) > 2
    assert {t.score for t in trials} == {t.score for t in runs}


def test_several_at_once(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1e-6..1e-1:log")
    trials = searched(tmp_path, search, FormulaLauncher(at_once=3))
    assert len(trials) == 12
    assert not any(t.state in ("failed", "unfinished") for t in trials)


def test_data_that_changes_between_two_runs_ends_it(registry: Registry, tmp_path: Path) -> None:
    class Changing(FormulaLauncher):
        def train(self, order: Order) -> str | None:
            ended = super().train(order)
            if len(self.trained) == 3:
                path = order.folder / "data.json"
                path.write_text(json.dumps({**json.loads(path.read_text()), "digest": "other"}))
            return ended

    with pytest.raises(ConfigError, match="the data has changed since the runs before it"):
        searched(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), Changing())
    trials = searched(tmp_path / "again", search_over(registry, lr="1e-6..1e-1:log"), runs=3)
    assert len(trials) == 3


def test_failures_are_told_and_do_not_stop_it(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1e-4,1e-3,1.0")
    trials = searched(tmp_path, search, sampler="grid")
    (failed,) = [t for t in trials if t.state == "failed"]
    assert failed.error == "Error: diverged"
    assert rows_of(search, trials)[0].failed == 1
    for _ in range(2):
        with pytest.raises(ConfigError) as refused:
            searched(tmp_path / "all", search_over(registry, lr="1.0..9.0"))
        assert str(refused.value) == (
            "the first 3 runs have failed, the last with: Error: diverged. Failed runs are not "
            f"tried again; when the cause is fixed, remove {tmp_path / 'all'} and call aang tune "
            "again"
        )


def test_why_there_is_no_best_setting(registry: Registry, tmp_path: Path) -> None:
    search = search_over(registry, lr="1.0,2.0")
    trials = searched(tmp_path, search, sampler="grid")
    with pytest.raises(ConfigError, match="2 of 2 runs have failed, the last with: Error: div"):
        best_or_why_none(trials, tmp_path)
    for few in ([], [replace(trials[0], state="unfinished"), trials[1]]):
        with pytest.raises(ConfigError, match="give it a larger budget"):
            best_or_why_none(few, tmp_path)


@pytest.mark.parametrize(
    ("had", "asked", "told"),
    [
        ((20, None), (30, None), "--runs 30: this search ended with 20; its"),
        ((20, None), (None, 5.0), "--minutes 5: this search ended with --runs 20; its"),
        ((None, 60.0), (5, None), "--runs 5: this search ended with --minutes 60; its"),
        ((None, 60.0), (5, 90.0), "--minutes 90: this search ended with 60; its"),
        ((20, 60.0), (10, None), "--runs 10: this search ended with --minutes 60; its"),
        ((20, None), (20, 5.0), None),
        ((20, 60.0), (10, 60.0), None),
        ((20, None), (None, None), None),
    ],
)
def test_a_search_that_is_over_is_not_made_longer(
    had: tuple[int | None, float | None],
    asked: tuple[int | None, float | None],
    told: str | None,
) -> None:
    chosen = Chosen(0, {}, *had)
    if told is None:
        refuse_longer(chosen, *asked)
        return
    with pytest.raises(ConfigError) as refused:
        refuse_longer(chosen, *asked)
    assert str(refused.value).startswith(told)


class _Clock:
    """Stands in for ``time``: its seconds pass when a test says so."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class _Endless(FormulaLauncher):
    """Runs that train until they are asked to end, as the third one does, for 4 seconds.

    asked_at: the time at which it was asked to end.
    """

    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock
        self._asked = threading.Event()
        self.asked_at = 0.0

    def train(self, order: Order) -> str | None:
        if len(self.trained) < 2:
            return super().train(order)
        self.trained.append(order.name)
        self._clock.now += 3.75
        assert not self._asked.wait(0.05), "there is time left"
        self._clock.now += 0.25
        assert self._asked.wait(60)
        return "Error: stopped by SIGTERM"

    def end(self, order: Order) -> bool:
        self.asked_at = self._clock.now
        self._asked.set()
        return True


def test_minutes_end_a_search_and_its_runs(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that was stopped counts as unfinished; more minutes go on with it."""
    clock = _Clock()
    monkeypatch.setattr("aang_plugin_tune.searcher.time", clock)
    monkeypatch.setattr("aang_plugin_tune.searcher.LOOK_SECONDS", 0.01)
    search = search_over(registry, lr="1e-6..1e-1:log")
    endless = _Endless(clock)
    trials = searched(tmp_path, search, endless, runs=ANY, seconds=4)
    assert endless.asked_at == 1004
    assert [t.state for t in trials] == ["finished", "finished", "unfinished"]
    launcher = FormulaLauncher()
    assert searched(tmp_path, search, launcher, runs=ANY, seconds=4) == trials
    assert launcher.trained == []
    assert [t.number for t in searched(tmp_path, search, launcher, runs=4)] == [0, 1, 2, 3]
    assert launcher.trained == ["trial-2", "trial-3"]


def test_the_table(registry: Registry, tmp_path: Path) -> None:
    methods = {n: {"weighter": n} for n in ("single-task", "static", "factored")}
    search = search_over(registry, methods, lr="1e-6..1e-1:log")
    search = replace(search, options={"steps": 40, "set": {}})
    trials = searched(tmp_path, search)
    rows = rows_of(search, trials)
    assert {row.method for row in rows} == set(methods)
    assert sum(row.tried for row in rows) == 12
    scores = [row.dev for row in rows if row.dev is not None]
    assert scores == sorted(scores, reverse=True)
    best = best_of(trials)
    assert best is not None
    chosen = Chosen(best.number, dict(best.setting), 12, None)
    refitted_by(FormulaLauncher(), tmp_path, search, chosen, 3)
    results = refitted(tmp_path)
    assert [result.seed for result in results] == [0, 1, 2]
    for number in range(12):
        assert options_of(tmp_path, f"trial-{number}")["test_score"] is False
    assert options_of(tmp_path, "refit-seed-1")["test_score"] is True
    outcome = Outcome("macro-f1", rows, trials, 5.0, chosen, results)
    document = json.loads(text_of(outcome, "json"))
    assert [row["method"] for row in document["methods"]] == [row.method for row in rows]
    assert [r["test"] for r in document["refits"]] == [best.score - 0.1] * 3  # type: ignore[operator]
    assert "0, 1, 2" in text_of(outcome, "text")
    assert f"| {rows[0].method} |" in text_of(outcome, "markdown")


class _Checkpointing(FormulaLauncher):
    """Leaves checkpoints, as real runs do, and cannot train with one of the seeds."""

    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self._broken = broken

    def train(self, order: Order) -> str | None:
        (order.folder / "checkpoints" / "000040").mkdir(parents=True)
        if order.name == self._broken:
            return "Error: out of memory"
        return super().train(order)


def test_refits_keep_no_checkpoints_and_one_that_fails_hides_no_other(
    registry: Registry, tmp_path: Path
) -> None:
    search = search_over(registry, lr="1e-5,1e-4")
    make_root(tmp_path)
    chosen = Chosen(0, {"lr": 1e-4}, 2, None)
    launcher = _Checkpointing("refit-seed-2")
    with pytest.raises(ConfigError, match="1 of 5 refits failed: Error: out of memory"):
        refitted_by(launcher, tmp_path, search, chosen, 5)
    assert [result.seed for result in refitted(tmp_path)] == [0, 1, 3, 4]
    (kept,) = tmp_path.rglob("checkpoints")
    assert kept.parent.name == "refit-seed-2"
    shutil.rmtree(kept)
    # One that an earlier call has left is removed as well.
    (tmp_path / "runs" / "refit-seed-1" / "checkpoints").mkdir()
    refitted_by(_Checkpointing(), tmp_path, search, chosen, 5)
    assert [result.seed for result in refitted(tmp_path)] == [0, 1, 2, 3, 4]
    assert not list(tmp_path.rglob("checkpoints"))


def test_the_folder_of_another_search(registry: Registry, tmp_path: Path) -> None:
    make_root(tmp_path)
    how = {"sampler": "tpe", "seed": 0, "prune_after": 5}
    claim_folder(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), **how)
    claim_folder(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), **how)
    with pytest.raises(ConfigError, match="belongs to a search that differs in search"):
        claim_folder(tmp_path, search_over(registry, lr="1e-6..1e-2:log"), **how)
    with pytest.raises(ConfigError, match="differs in seed: 0 and not 1"):
        claim_folder(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), **{**how, "seed": 1})
    other = tmp_path / "other"
    (other / "runs" / "task").mkdir(parents=True)
    with pytest.raises(ConfigError, match="has runs in it that no search made"):
        claim_folder(other, search_over(registry, lr="1e-6..1e-1:log"), **how)


def test_a_record_that_is_damaged(registry: Registry, tmp_path: Path) -> None:
    make_root(tmp_path)
    (tmp_path / JOURNAL).write_text("this is not a record\nat all\n")
    with pytest.raises(DataError, match="is damaged"):
        Study(tmp_path, search_over(registry, lr="1e-6..1e-1:log"), "tpe", 0, 5)
