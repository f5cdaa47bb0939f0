"""Quick controls: on real data, made once, and with the rows that runs draw."""

import json
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from aang_plugin_compare.cells import Comparison
from aang_plugin_compare.control_results import (
    QUICK_CONTROLS,
    asked_of,
    read_result,
    result_file,
)
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.quick_controls import FrozenEncoder, QuickControls
from aang_plugin_compare.run_folders import left_out
from aang_plugin_compare.tables import outcome

from aang_core import ConfigError, DataError, Example, ReadReport, load_plugins
from tests.one_layer_encoder import write_one_layer_encoder
from tests.support.model import load_tokenizer
from tests.support.runs import read_end_task, resolve_config

REGISTRY = load_plugins(environ={}).registry


@pytest.fixture(scope="session")
def real_task() -> Path:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "acl-arc"
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``train.jsonl``, ``dev.jsonl`` and ``test.jsonl`` of two classes, and ``encoder/``."""
    folder = tmp_path_factory.mktemp("small")
    for part, rows in {"train": 32, "dev": 12, "test": 12}.items():
        texts = [f"{'open' if i % 2 else 'close'} the {part} file {i}" for i in range(rows)]
        lines = [json.dumps({"text": text, "label": text.split()[0]}) for text in texts]
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_one_layer_encoder(folder / "encoder")
    return folder


@dataclass(frozen=True)
class Made:
    """A comparison whose quick controls were made, and what was said about them."""

    root: Path
    plan: Comparison
    told: list[tuple[str, bool]]

    def copy(self, root: Path) -> Path:
        """A copy of its folder, to be changed."""
        return Path(shutil.copytree(self.root, root))


@pytest.fixture(scope="module")
def made(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("made")
    plan = comparison(root, small, model=str(small / "encoder"), train_rows=24)
    return Made(root, plan, make(root, plan))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AANG_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def comparison(folder: Path, data: Path, seeds: int = 2, **options: object) -> Comparison:
    spec = {
        "tasks": {"t": {part: str(data / f"{part}.jsonl") for part in ("train", "dev", "test")}},
        "methods": {"plain": {"weighter": "single-task"}, "aang": {"weighter": "factored"}},
        "seeds": list(range(seeds)),
        "options": options,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return read_comparison(path, REGISTRY)


def make(root: Path, plan: Comparison) -> list[tuple[str, bool]]:
    told: list[tuple[str, bool]] = []
    QuickControls(root, lambda line, failed: told.append((line, failed))).run(plan)
    return told


@pytest.mark.full
def test_on_acl_arc(tmp_path: Path, real_task: Path) -> None:
    """TF-IDF is strong there: 52 of the 139 test texts are in the training data."""
    (tmp_path / "encoder").mkdir()
    plan = comparison(tmp_path, real_task, seeds=1, max_length=8)
    make(tmp_path, plan)
    result = read_result(result_file(tmp_path, "t", "tf-idf", 0))
    assert result is not None
    assert result.metric.test is not None
    assert 0.60 < result.metric.dev < 0.72
    assert 0.60 < result.metric.test < 0.70
    assert (result.tried, result.quick, result.rows) == (5, True, None)
    frozen = [read_result(result_file(tmp_path, "t", name, 0)) for name in QUICK_CONTROLS[1:]]
    for one in frozen:
        assert one is not None
        # The majority class alone has 0.11.
        assert 0.15 < one.metric.dev < result.metric.dev


def test_they_are_made_once_and_stand_in_front(made: Made, tmp_path: Path, small: Path) -> None:
    root, plan = made.copy(tmp_path / "made"), made.plan
    assert made.told == [
        (f"t/{name}/seed-{seed}: done", False) for seed in (0, 1) for name in QUICK_CONTROLS
    ]
    assert make(root, plan) == []
    *entries, plain, aang = outcome(plan, root)
    assert [entry.method for entry in entries] == list(QUICK_CONTROLS)
    assert (plain.missing, aang.missing) == (2, 2)
    for entry in entries:
        assert (entry.drawn, entry.quick, entry.tried, entry.missing) == (True, True, 5, 0)
        assert len(entry.test) == len(entry.dev) == len(entry.seconds) == 2
    assert outcome(plan, root, quick=False) == [plain, aang]
    # Another number of rows is another result; what an encoder reads does not concern TF-IDF.
    shorter = comparison(tmp_path, small, model=str(small / "encoder"), train_rows=24, max_length=8)
    assert [line for line, _ in make(root, shorter)] == [
        f"t/{name}/seed-{seed}: done" for seed in (0, 1) for name in QUICK_CONTROLS[1:]
    ]


def test_they_have_the_rows_that_runs_draw(made: Made) -> None:
    for cell in made.plan.cells:
        _, draw = read_end_task(cell.config, ReadReport())
        result = read_result(result_file(made.root, "t", "frozen-mean", cell.seed))
        assert result is not None
        assert draw is not None
        assert result.rows == draw.digest


def test_a_result_of_other_options_is_not_in_the_table(tmp_path: Path, small: Path) -> None:
    """Of other data, such as that of the task that --target names, or without a test score."""
    parts = {part: str(small / f"{part}.jsonl") for part in ("train", "dev", "test")}
    other = tmp_path / "dev.jsonl"
    other.write_text((small / "dev.jsonl").read_text(), encoding="utf-8")

    def planned(**options: object) -> Comparison:
        task = {"aux_task": {"other": parts["train"]}, "target": "other"}
        spec = {
            "tasks": {"t": task},
            "methods": {"plain": {"weighter": "single-task"}},
            "seeds": [0],
            "options": {"model": str(small / "encoder"), **options},
        }
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps(spec), encoding="utf-8")
        return read_comparison(path, REGISTRY)

    def shown(plan: Comparison) -> list[str]:
        reasons = left_out(plan, tmp_path, REGISTRY)
        assert all("was computed with other options" in reason for reason in reasons.values())
        plan = replace(plan, left_out=frozenset(reasons))
        return [entry.method for entry in outcome(plan, tmp_path) if entry.quick]

    first = planned(set={"other": {"dev": parts["dev"], "test": parts["test"]}})
    again = planned(set={"other": {"dev": str(other), "test": parts["test"]}})
    untested = planned(set={"other": {"dev": str(other), "test": parts["test"]}}, test_score=False)
    drawn = planned(set={"other": {"dev": parts["dev"], "test": parts["test"]}}, train_rows=24)
    make(tmp_path, first)
    assert shown(first) == list(QUICK_CONTROLS)
    for plan in (again, untested, drawn):
        assert shown(plan) == []
        assert len(make(tmp_path, plan)) == 3
        assert shown(plan) == list(QUICK_CONTROLS)
        assert shown(first) == []


def test_results_of_earlier_versions_are_kept(tmp_path: Path) -> None:
    """What only some comparisons ask for is not written down for the others."""
    (cell, *_) = comparison(tmp_path, tmp_path, set={"factored": {"n": 2}}).leading()
    assert not {"set", "test_score"} & set(asked_of(cell.config, "frozen-mean"))


def test_an_encoder_made_anew_in_its_folder_is_read_again(tmp_path: Path, small: Path) -> None:
    encoder = shutil.copytree(small / "encoder", tmp_path / "encoder")
    plan = comparison(tmp_path, small, seeds=1, model=str(encoder))
    assert all(line.endswith("done") for line, _ in make(tmp_path, plan))
    assert make(tmp_path, plan) == []
    later = time.time() + 60
    os.utime(encoder / "model.safetensors", (later, later))
    again = [line.split("/")[1] for line, _ in make(tmp_path, plan)]
    assert again == ["frozen-first-token", "frozen-mean"]


def test_dev_scores_of_rows_that_were_trained_on_are_left_out(tmp_path: Path, small: Path) -> None:
    plan = comparison(tmp_path, small, train_on_dev=True)
    make(tmp_path, plan)
    quick = [entry for entry in outcome(plan, tmp_path) if entry.quick]
    assert [entry.method for entry in quick] == list(QUICK_CONTROLS)
    assert not any(entry.dev for entry in quick)
    assert all(entry.test for entry in quick)


def test_rows_that_differ_are_refused(made: Made, tmp_path: Path) -> None:
    root = made.copy(tmp_path / "made")
    path = result_file(root, "t", "tf-idf", 1)
    path.write_text(path.read_text().replace('"rows": "', '"rows": "0'), encoding="utf-8")
    with pytest.raises(ConfigError, match="has other training rows than"):
        outcome(made.plan, root)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"seed-1\.json: is damaged"):
        outcome(made.plan, root)


def test_what_cannot_be_made_is_told(tmp_path: Path, small: Path) -> None:
    plan = comparison(tmp_path, small, model=str(tmp_path / "none"), train_rows=24)
    told = make(tmp_path, plan)
    assert told[0] == ("t/tf-idf/seed-0: done", False)
    assert told[1][1]
    assert told[1][0].startswith("t/quick controls/seed-0: Error: ")
    few = comparison(tmp_path, small, train_rows=1)
    ((line, failed), _) = make(tmp_path, few)
    assert failed
    assert "--train-rows 1" in line


def test_without_a_test_set(tmp_path: Path, small: Path) -> None:
    comparison(tmp_path, small, seeds=1, model=str(small / "encoder"))
    content = json.loads((tmp_path / "spec.yaml").read_text())
    del content["tasks"]["t"]["test"]
    (tmp_path / "spec.yaml").write_text(json.dumps(content), encoding="utf-8")
    plan = read_comparison(tmp_path / "spec.yaml", REGISTRY)
    make(tmp_path, plan)
    assert [entry.test for entry in outcome(plan, tmp_path)] == [[]] * 5


def test_features_are_those_of_the_encoder(small: Path) -> None:
    """Each text alone, by transformers; the order and the padding of batches change nothing."""
    from transformers import AutoModel

    config = resolve_config({"model": str(small / "encoder"), "max_length": 12}, {})
    encoder = FrozenEncoder(str(small / "encoder"), config, torch.device("cpu"))
    texts = [("open the file again", None), ("close", "the socket"), ("close it", None)]
    found = torch.tensor(encoder([Example(*text) for text in reversed(texts)][::-1]))
    model = AutoModel.from_pretrained(small / "encoder").eval()
    tokenizer = load_tokenizer(str(small / "encoder"))
    for (text, pair), features in zip(texts, found, strict=True):
        inputs = tokenizer(text, pair, truncation=True, max_length=12, return_tensors="pt")
        with torch.no_grad():
            (hidden,) = model(**inputs).last_hidden_state
        torch.testing.assert_close(features, torch.stack([hidden[0], hidden.mean(dim=0)]))
