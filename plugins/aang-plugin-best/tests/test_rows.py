"""Labelled rows and their folds."""

import json
from pathlib import Path

import numpy as np
import pytest
from aang.config import TrainConfig, resolve_training
from aang_plugin_best.rows import Rows, read_labelled

from aang_core import AangError, DataError, ReadReport, load_plugins


def config_of(path: Path, **more: object) -> TrainConfig:
    options = {"train": str(path), "weighter": "single-task", **more}
    return resolve_training({}, options, load_plugins().registry)


def rows_in(path: Path, group: str | None = None, **more: object) -> Rows:
    registry = load_plugins().registry
    return read_labelled(config_of(path, **more), registry, ReadReport(), group, False)[0]


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def many(count: int, classes: str = "ab") -> list[dict[str, object]]:
    return [{"text": f"text number {i}", "label": classes[i % len(classes)]} for i in range(count)]


def test_every_row_is_held_out_once_and_every_class_is_trained(tmp_path: Path) -> None:
    """A class with fewer rows than folds is in some of them; no row is copied."""
    rows = rows_in(written(tmp_path / "data.jsonl", [*many(48), *many(2, "c")]))
    assert rows.count == 5
    assert len(rows.folds) == 50
    for fold in range(5):
        assert set(rows.truth[rows.folds != fold]) == {0, 1, 2}
        assert 9 <= (rows.folds == fold).sum() <= 11


def test_dev_joins_in_and_places_name_the_lines(tmp_path: Path) -> None:
    train = written(tmp_path / "data.jsonl", many(30))
    dev = written(tmp_path / "dev.jsonl", [{"text": "one more", "label": "b"}])
    rows = rows_in(train, dev=str(dev))
    assert len(rows.examples) == 31
    assert rows.places[0] == f"{train}:1"
    assert rows.places[-1] == f"{dev}:1"


def test_equal_texts_and_equal_groups_stay_together(tmp_path: Path) -> None:
    rows = many(40)
    for number, row in enumerate(rows):
        row["author"] = number // 4
    rows += [{**rows[0], "text": "Text  NUMBER 39", "author": "alone"}]
    found = rows_in(written(tmp_path / "data.jsonl", rows), group="author")
    for author in range(10):
        assert len(set(found.folds[4 * author : 4 * author + 4])) == 1
    assert found.folds[40] == found.folds[39]


@pytest.mark.parametrize("other", [7.0, "7", "7.0", "7 "])
def test_a_group_has_one_name_however_files_write_it(tmp_path: Path, other: object) -> None:
    rows = [{**row, "author": number // 4} for number, row in enumerate(many(40))]
    rows[31]["author"] = other
    found = rows_in(written(tmp_path / "data.jsonl", rows), group="author")
    assert len(set(found.groups[28:32])) == 1


def test_a_row_without_a_group_is_told(tmp_path: Path) -> None:
    """A row that is left out anyway needs none."""
    rows = [{**row, "author": number // 4} for number, row in enumerate(many(40))]
    bad = {"text": "", "label": rows[0]["label"], "author": None}
    data = written(tmp_path / "data.jsonl", [*rows, bad])
    assert len(rows_in(data, group="author", skip_bad_rows=True).truth) == 40
    rows[30]["author"] = float("nan")
    with pytest.raises(DataError, match=r"data.jsonl:31: --group author: there is no such value"):
        rows_in(written(tmp_path / "data.jsonl", rows), group="author")


def test_the_files_of_a_fold_hold_all_rows(tmp_path: Path) -> None:
    rows = rows_in(written(tmp_path / "data.jsonl", many(40)))
    rows.write(tmp_path / "folds")
    whole = (tmp_path / "folds" / "rows.jsonl").read_text().splitlines()
    for fold in range(rows.count):
        folder = tmp_path / "folds" / f"fold-{fold}"
        parts = [(folder / f"{name}.jsonl").read_text() for name in ("train", "held-out")]
        assert sorted("".join(parts).splitlines()) == sorted(whole)
        assert len(parts[1].splitlines()) == np.sum(rows.folds == fold)


UNEQUAL: list[dict[str, object]] = [
    {"text": f"text {number}", "label": label, "g": group}
    for number, (label, group) in enumerate(
        zip("aaaaaaaaaabaaabbaabaabaaaaba", "4224444442144401420420422202", strict=True)
    )
]
"""Every row of class b is in one of two small groups."""


@pytest.mark.parametrize(
    ("rows", "group", "said"),
    [
        (many(5), None, "5 labelled rows"),
        ([*many(40), {"text": "rare", "label": "c"}], None, "class 'c' has a single row"),
        ([{**row, "g": "same"} for row in many(40)], "g", "2|one group"),
        (many(40), "nothing", "there is no such value"),
        (many(40, "a"), None, "only class is 'a'"),
        (UNEQUAL, "g", "a fold would hold all of"),
    ],
)
def test_what_cannot_be_divided_is_refused(
    tmp_path: Path, rows: list[dict[str, object]], group: str | None, said: str
) -> None:
    with pytest.raises(AangError, match=said):
        rows_in(written(tmp_path / "data.jsonl", rows), group=group)
