"""Means, the choice on dev, significance, and the forms of the table."""

import itertools
import json
import resource
import signal
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from aang_plugin_compare.cells import Comparison
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.statistics import holm, paired_t_p, permutation_p
from aang_plugin_compare.tables import Entry, outcome, table, write_outcome

from aang_core import ConfigError, load_plugins
from tests.support.plugins import StorageError

SPEC = """\
tasks: {a: {train: a.jsonl}}
methods:
  plain: {weighter: single-task}
  other_one: {weighter: static}
seeds: [0, 1, 2, 3]
baseline: plain
"""


def comparison(folder: Path, text: str = SPEC) -> Comparison:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return read_comparison(path, load_plugins(environ={}).registry)


def finish(root: Path, folder: Path, dev: float, test: float | None) -> None:
    (root / folder).mkdir(parents=True)
    result = {
        "metric": {"name": "accuracy", "dev": dev, "test": test},
        "majority": {"dev": 0.1, "test": test},
        **dict.fromkeys(("weighter", "space", "model"), "x"),
        **dict.fromkeys(("seed", "objectives", "best_step", "steps", "train_seconds"), 1),
        **dict.fromkeys(("body_rows", "peak_memory_bytes"), 1),
    }
    (root / folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


PLAIN = (0.50, 0.52, 0.51, 0.53)
OTHER = (0.56, 0.57, 0.55, 0.60)


@pytest.fixture
def entries(tmp_path: Path) -> list[Entry]:
    plan = comparison(tmp_path)
    for cell in plan.cells:
        test = (PLAIN if cell.method == "plain" else OTHER)[cell.seed]
        finish(tmp_path, cell.folder, test + 0.1, test)
    return outcome(plan, tmp_path)


def test_intervals_of_runs_stand_beside_their_means(tmp_path: Path) -> None:
    """The means of their ends."""
    plan = comparison(tmp_path)
    for cell in plan.cells:
        finish(tmp_path, cell.folder, 0.6, 0.5)
        if cell.method == "plain":
            path = tmp_path / cell.folder / "result.json"
            result = json.loads(path.read_text(encoding="utf-8"))
            low = 0.4 + cell.seed / 100
            result["metric"]["intervals"] = {"dev": [0.5, 0.7], "test": [low, low + 0.2]}
            path.write_text(json.dumps(result), encoding="utf-8")
    entries = outcome(plan, tmp_path)
    text = table(entries, "text", None)
    assert "60.00 ± 0.00 (50.0–70.0)" in text
    assert "50.00 ± 0.00 (41.5–61.5)" in text
    (others,) = (line for line in text.splitlines() if "other-one" in line or "other_one" in line)
    assert "(" not in others
    assert [list(e.test_intervals) for e in entries if e.method != "plain"] == [[]]


def test_the_permutation_test_is_exact_for_few_pairs() -> None:
    """All 2⁴ ways to swap within pairs: two of them, none and all, are as far apart."""
    differences = [a - b for a, b in zip(OTHER, PLAIN, strict=True)]
    seen = abs(sum(differences))
    ways = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=4)
    ]
    expected = sum(way >= seen - 1e-12 for way in ways) / len(ways)
    assert permutation_p(OTHER, PLAIN) == pytest.approx(expected)
    assert expected == 0.125
    assert permutation_p([1.0], [2.0]) is None
    many = [i / 100 for i in range(40)]
    assert permutation_p(many, [x + 0.001 for x in many]) == pytest.approx(2 / 10_001)


@pytest.mark.parametrize(
    ("rows", "before", "gained"),
    [
        (139, 100, [1, 1, -1, 1, 1, 1, 1, 0, 1, 0]),
        (974, 860, [-1, 0, 0, 1, 1, 1, 1, 2]),
        (65, 60, [2, -1, 0, 1, 1, 0]),
        (139, 90, [1, -1, 2, -2, 0, 0]),
    ],
)
def test_differences_that_are_equal_but_for_rounding_count_as_equal(
    rows: int, before: int, gained: list[int]
) -> None:
    """Accuracies are counts over rows, so many ways to swap have the same sum in whole numbers."""
    found = range(before, before + len(gained))
    plain = [number / rows for number in found]
    other = [(number + more) / rows for number, more in zip(found, gained, strict=True)]
    signs = itertools.product((1, -1), repeat=len(gained))
    sums = [abs(sum(s * g for s, g in zip(of_way, gained, strict=True))) for of_way in signs]
    expected = sum(way >= abs(sum(gained)) for way in sums) / len(sums)
    assert permutation_p(other, plain) == pytest.approx(expected, abs=1e-12)
    assert permutation_p(plain, other) == pytest.approx(expected, abs=1e-12)


def test_the_same_difference_for_every_seed_has_no_t_test() -> None:
    """101/139 - 100/139 and 103/139 - 102/139 are one row each and differ in the last bit."""
    for seeds in (2, 3, 5):
        for first in range(60, 134):
            plain = [(first + i) / 139 for i in range(seeds)]
            assert paired_t_p([score + 1 / 139 for score in plain], plain) is None
    assert paired_t_p([0.51, 0.52, 0.53], [0.5, 0.5, 0.5]) is not None


def test_the_t_test_by_hand() -> None:
    """t = mean / (s / √n) with differences 0.06, 0.05, 0.04, 0.07: 8.5206, 3 degrees of freedom."""
    p = paired_t_p(OTHER, PLAIN)
    assert p == pytest.approx(0.00339, abs=1e-5)
    assert paired_t_p([1.0], [2.0]) is None
    assert paired_t_p([1.0, 2.0], [1.0, 2.0]) is None


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == [0.03, 0.06, None, 0.06]
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_table_has_means_and_p_values(entries: list[Entry]) -> None:
    plain, other = entries
    assert (plain.best, other.best) == (False, True)
    assert plain.permutation is None
    assert other.permutation == pytest.approx(0.125)
    assert other.t_test == pytest.approx(0.00339, abs=1e-5)
    mean, std = 100 * statistics.mean(OTHER), 100 * statistics.stdev(OTHER)
    shown = f"{mean:.2f} ± {std:.2f}"
    assert f"**{shown}**" in table(entries, "markdown", "plain")
    in_text = table(entries, "text", "plain")
    assert f"{shown} *" in in_text
    assert in_text.endswith("\n* the best mean of its task\n")
    latex = table(entries, "latex", "plain")
    assert r"other\_one" in latex
    plus_minus = shown.replace("±", r"$\pm$")
    assert rf"\textbf{{{plus_minus}}}" in latex
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 1
    assert json.loads(table(entries, "json", "plain"))[1]["test"] == list(OTHER)


def test_hyper_parameters_are_chosen_on_dev_alone(tmp_path: Path) -> None:
    """The setting with the best dev scores has the worst test scores, and it is taken."""
    plan = comparison(tmp_path, SPEC + "grid: {lr: [0.1, 0.2]}\n")
    for cell in plan.cells:
        better_on_dev = cell.setting == "lr=0.2"
        finish(tmp_path, cell.folder, 0.7 + 0.1 * better_on_dev, 0.9 - 0.3 * better_on_dev)
    for entry in outcome(plan, tmp_path):
        assert entry.setting == "lr=0.2"
        assert entry.tried == 2
        assert entry.test == pytest.approx([0.6] * 4)


def test_missing_runs_are_told(tmp_path: Path) -> None:
    """Of the others three seeds are there, of the baseline none: nothing is tested."""
    plan = comparison(tmp_path)
    for cell in plan.cells:
        if cell.method != "plain" and cell.seed:
            finish(tmp_path, cell.folder, 0.5, None)
    found = outcome(plan, tmp_path)
    plain, entry = sorted(found, key=lambda e: e.missing, reverse=True)
    assert (plain.method, plain.missing, plain.scores, plain.best) == ("plain", 4, [], False)
    assert entry.missing == 1
    assert entry.t_test is None
    text = table(found, "text", "plain")
    assert "3 of 4" in text
    assert "50.00 ± 0.00 *" in text
    (row,) = [line for line in text.splitlines() if "0 of 4" in line]
    assert row.split()[:4] == ["a", "plain", "–", "–"]


def test_dev_scores_are_not_compared_with_test_scores(tmp_path: Path) -> None:
    """Where one method of a task has no test score, all of the task are judged on dev."""
    text = SPEC.replace("tasks: {a:", "tasks: {b: {train: b.jsonl}, a:")
    plan = comparison(tmp_path, text.replace("static}", "static, test-score: false}"))
    for cell in plan.cells:
        plain = cell.method == "plain"
        dev = (0.8 if plain else 0.81) + 0.001 * cell.seed
        tested = plain or cell.task == "b"
        finish(tmp_path, cell.folder, dev, dev - 0.3 if tested else None)
    on_test, other_on_test, plain, other = outcome(plan, tmp_path)
    assert (on_test.task, on_test.scores, on_test.on_dev) == ("b", on_test.test, False)
    assert other_on_test.points == pytest.approx(1.0)
    assert (plain.task, plain.scores, other.scores) == ("a", plain.dev, other.dev)
    assert plain.test
    assert other.points == pytest.approx(1.0)
    assert (plain.best, other.best) == (False, True)
    marked = table([plain, other], "text", "plain").splitlines()[:-1]
    rows = [line for line in marked if "*" in line]
    assert [line.split()[:5] for line in rows] == [["a", "other_one", "81.15", "±", "0.13"]]
    plain_best = table([plain, replace(plain, best=True)], "markdown", "plain")
    assert "| **80.15 ± 0.13** | 50.15 ± 0.13 |" in plain_best


def test_runs_of_different_data_are_refused(tmp_path: Path) -> None:
    """As if a file were corrected between two runs of one call."""
    plan = comparison(tmp_path)
    for cell in plan.cells:
        finish(tmp_path, cell.folder, 0.5, 0.5)
        data = {"task": "a", "notes": [], "parts": {}, "sources": {}, "digest": "old"}
        (tmp_path / cell.folder / "data.json").write_text(json.dumps(data))
    assert len(outcome(plan, tmp_path)) == 2
    (tmp_path / cell.folder / "data.json").write_text(json.dumps({**data, "digest": "new"}))
    with pytest.raises(ConfigError, match="has other data than"):
        outcome(plan, tmp_path)


def test_all_that_are_shown_as_the_best_are_marked(tmp_path: Path) -> None:
    plan = comparison(tmp_path)
    for cell in plan.cells:
        finish(tmp_path, cell.folder, 0.5, 0.600001 if cell.method == "plain" else 0.6)
    found = outcome(plan, tmp_path)
    assert len(found) == 2
    assert all(entry.best for entry in found)
    assert table(found, "text", "plain").count("60.00 ± 0.00 *") == 2


def test_a_full_disk_leaves_the_tables_of_before(tmp_path: Path) -> None:
    entries = [Entry("a", "plain", "", [], [], [], "", 1, 1)]
    write_outcome(tmp_path, entries, [], None, difference=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 6
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*table.txt: File too large"):
            write_outcome(tmp_path, entries * 2, [], None, difference=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
