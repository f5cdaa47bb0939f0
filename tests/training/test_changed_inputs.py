"""A run that is resumed with other data, options or surroundings than it began with."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from tests.support.runs import TrainConfig, with_absolute_paths
from tests.training.conftest import Aang
from tests.training.forks import ROOT, Forks
from tests.training.resuming import after_lines, everything, kill, lines

STEPS = 10
SPACE = "name: mine\ndata: [task]\ntransform: [mask]\nrepresentation: [bidirectional]\noutput: {}\n"


@dataclass(frozen=True)
class Interrupted:
    """A run that was killed in the middle, what it reads, and the same run uninterrupted."""

    run: Path
    place: Path
    whole: Path


@pytest.fixture(scope="module")
def killed(
    forks: Forks,
    small: list[object],
    encoder: Path,
    task_files: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Interrupted:
    """It named its files from another folder than that of the tests."""
    place = tmp_path_factory.mktemp("place")
    shutil.copytree(encoder, place / "encoder")
    for name in ("train", "dev", "test"):
        shutil.copy(task_files / f"{name}.jsonl", place)
    shutil.copy(task_files / "domain.txt", place)
    (place / "mine.yaml").write_text(SPACE.format("[denoise, end-task]"))
    here = os.path.relpath(place, ROOT)
    options = [
        *small,
        "--steps",
        STEPS,
        "--space",
        f"{here}/mine.yaml",
        "--model",
        f"{here}/encoder",
    ]
    options += [v for n in ("train", "dev", "test") for v in (f"--{n}", f"{here}/{n}.jsonl")]
    child = forks.aang(*options, "--out", place / "whole")
    assert child.wait() == 0, child.said
    child = forks.aang(*options, "--out", place / "run")
    child.when(after_lines(place / "run" / "weights.jsonl", 5))
    kill(child)
    return Interrupted(place / "run", place, place / "whole")


@pytest.fixture
def interrupted(killed: Interrupted, tmp_path: Path) -> Iterator[Interrupted]:
    """A copy of the run; what it reads is as it was after the test."""
    before = {path: path.read_bytes() for path in killed.place.glob("*") if path.is_file()}
    encoder = {path: path.read_bytes() for path in (killed.place / "encoder").iterdir()}
    run = shutil.copytree(killed.run, tmp_path / "run")
    yield Interrupted(run, killed.place, killed.whole)
    for path, content in (before | encoder).items():
        path.write_bytes(content)


def test_it_goes_on_from_another_folder(
    aang: Aang, interrupted: Interrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where other files have the names that it was given; the result is the same."""
    elsewhere = tmp_path / "a" / "b"
    elsewhere.mkdir(parents=True)
    (elsewhere / "train.jsonl").write_text("no data")
    monkeypatch.chdir(elsewhere)
    inputs = (interrupted.run / "inputs.json").read_bytes()
    done = aang("train", "--resume", interrupted.run, "--quiet")
    assert done.status == 0, done.err
    assert everything(interrupted.run) == everything(interrupted.whole)
    for name in ("data.json", "evaluation.json", "config.yaml", "inputs.json"):
        expected = (interrupted.whole / name).read_bytes()
        assert (interrupted.run / name).read_bytes() == expected, name
    assert (interrupted.run / "inputs.json").read_bytes() == inputs


def jsonl(change: Callable[[list[str]], None]) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        rows = path.read_text(encoding="utf-8").splitlines()
        change(rows)
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")

    return changed


def relabelled(rows: list[str]) -> None:
    first = json.loads(rows[0])
    others = [json.loads(row)["label"] for row in rows]
    rows[0] = json.dumps(first | {"label": next(n for n in others if n != first["label"])})


def reworded(rows: list[str]) -> None:
    rows[3] = json.dumps(json.loads(rows[3]) | {"text": "Something else entirely is said here."})


def other_weights(path: Path) -> None:
    weights = load_file(path)
    weights["bert.encoder.layer.1.output.dense.bias"][0] += 1e-6
    save_file(weights, path, metadata={"format": "pt"})


def other_option(path: Path) -> None:
    path.write_text(path.read_text().replace("\nlr: ", "\nlr: 0.5 #"))


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("train.jsonl", jsonl(lambda rows: rows.reverse()), "the data has changed (train"),
        ("train.jsonl", jsonl(relabelled), "the data has changed (train"),
        ("train.jsonl", jsonl(reworded), "the data has changed (train"),
        ("train.jsonl", jsonl(lambda rows: rows.append(rows[0])), "the data has changed (train"),
        ("dev.jsonl", jsonl(lambda rows: rows.pop()), "the data has changed (dev)"),
        ("test.jsonl", jsonl(lambda rows: rows.pop()), "the data has changed (test)"),
        ("encoder/model.safetensors", other_weights, "the encoder has other weights"),
        (
            "encoder/config.json",
            lambda path: path.write_text(path.read_text().replace('"gelu"', '"relu"')),
            "the encoder has other settings (hidden_act)",
        ),
        (
            "encoder/tokenizer_config.json",
            lambda path: path.write_text(
                path.read_text().replace("{", '{"truncation_side": "left",', 1)
            ),
            "the encoder's tokenizer has other settings",
        ),
        (
            "mine.yaml",
            lambda path: path.write_text(SPACE.format("[denoise]")),
            "there are other objectives",
        ),
        (
            "mine.yaml",
            lambda path: path.write_text(
                path.read_text().replace("[mask]", "[{mask: {rate: 0.9}}]")
            ),
            "the space gives other options to mask",
        ),
        ("run/config.yaml", other_option, "--lr was 0.0001 and is 0.5"),
    ],
)
def test_what_has_changed_is_named(
    aang: Aang,
    interrupted: Interrupted,
    file: str,
    change: Callable[[Path], None],
    told: str,
) -> None:
    """Nothing is written; as it was before, the run goes on."""
    root = interrupted.run.parent if file.startswith("run/") else interrupted.place
    change(root / file)
    before = {p: p.read_bytes() for p in interrupted.run.rglob("*") if p.is_file()}
    done = aang("train", "--resume", interrupted.run)
    assert done.status == 2
    assert told in done.err
    heads = told == "there are other objectives"
    assert ("--accept-changes does not help" if heads else "--accept-changes continues") in done.err
    assert {p: p.read_bytes() for p in interrupted.run.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "change", [lambda rows: rows.reverse(), lambda rows: rows.extend(rows[:9])]
)
def test_accepted_changes(
    aang: Aang, interrupted: Interrupted, change: Callable[[list[str]], None]
) -> None:
    """The run finishes, with every step once, and records what had changed."""
    jsonl(change)(interrupted.place / "train.jsonl")
    done = aang("train", "--resume", interrupted.run, "--accept-changes")
    assert done.status == 0, done.err
    assert lines(interrupted.run / "weights.jsonl") == STEPS
    recorded = json.loads((interrupted.run / "inputs.json").read_text())
    assert "(train" in recorded["changes"][0]
    assert recorded["changes"][0] in done.err


def test_with_other_dev_rows_the_best_model_is_looked_for_anew(
    aang: Aang, interrupted: Interrupted
) -> None:
    """A score on the rows of before may be one that no model reaches on those of now."""
    jsonl(lambda rows: rows.pop())(interrupted.place / "dev.jsonl")
    log = interrupted.run / "metrics.jsonl"
    before = log.read_text().splitlines()
    done = aang("train", "--resume", interrupted.run, "--accept-changes")
    assert done.status == 0, done.err
    scores = [json.loads(line) for line in log.read_text().splitlines()[len(before) :]]
    assert scores[0]["best"]
    best = [row["step"] for row in scores if row["best"]][-1]
    assert json.loads((interrupted.run / "result.json").read_text())["best_step"] == best


def test_the_number_of_threads_is_that_of_the_beginning(
    aang: Aang, interrupted: Interrupted, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(2)
    done = aang("train", "--resume", interrupted.run)
    assert done.status == 0, done.err
    assert "the run began with 1 threads" in done.err
    assert torch.get_num_threads() == 2
    assert everything(interrupted.run) == everything(interrupted.whole)


def test_other_versions_are_a_note(aang: Aang, interrupted: Interrupted) -> None:
    path = interrupted.run / "inputs.json"
    recorded = json.loads(path.read_text())
    recorded["versions"]["torch"] = "2.0.1"
    recorded["processes"] = 3
    path.write_text(json.dumps(recorded))
    done = aang("train", "--resume", interrupted.run)
    assert done.status == 0, done.err
    assert f"torch was 2.0.1 when the run began and is {torch.__version__}" in done.err
    assert "the number of processes was 3" in done.err


def test_a_record_that_is_missing_or_damaged(aang: Aang, interrupted: Interrupted) -> None:
    path = interrupted.run / "inputs.json"
    content = json.loads(path.read_text())
    for wrong in ({"threads": 10**9}, {"data": []}, {"options": None}, {"versions": {"torch": 2}}):
        path.write_text(json.dumps(content | wrong))
        done = aang("train", "--resume", interrupted.run)
        assert done.status == 2
        assert "inputs.json: is damaged" in done.err
    path.unlink()
    done = aang("train", "--resume", interrupted.run)
    assert done.status == 2
    assert "inputs.json is missing" in done.err


def test_only_a_resumed_run_accepts_changes(aang: Aang, tmp_path: Path) -> None:
    done = aang("train", "--accept-changes", "--out", tmp_path / "run")
    assert done.status == 2
    assert "--accept-changes: goes with --resume RUN" in done.err


def test_every_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names on the hub, registered names and ``rest`` stay."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "encoder").mkdir()
    given = {
        "train": "a.csv",
        "dev": "b.csv",
        "domain": ["papers/*.txt", "~/more", "/whole"],
        "unlabelled": ["rest", "./rest"],
        "train_rows": 3,
        "aux_task": {"wnli": "wnli.tsv"},
        "set": {"wnli": {"dev": "wnli-dev.tsv", "label": "dev"}, "task": {"dev": "x"}},
        "model": "encoder",
        "space": "mine.yaml",
    }
    config = with_absolute_paths(TrainConfig.model_validate(given))
    found = config.model_dump(mode="json", include=set(given))
    here = str(tmp_path)
    assert yaml.safe_load(yaml.safe_dump(found)) == {
        "train": f"{here}/a.csv",
        "dev": f"{here}/b.csv",
        "domain": [f"{here}/papers/*.txt", "~/more", "/whole"],
        "unlabelled": ["rest", f"{here}/rest"],
        "train_rows": 3,
        "aux_task": {"wnli": f"{here}/wnli.tsv"},
        "set": {"wnli": {"dev": f"{here}/wnli-dev.tsv", "label": "dev"}, "task": {"dev": "x"}},
        "model": f"{here}/encoder",
        "space": f"{here}/mine.yaml",
    }
    assert with_absolute_paths(config) == config
    hub = TrainConfig(dataset="org/data:part", model="org/model", space="td")
    assert with_absolute_paths(hub) == hub
