"""Training from Python on data in memory: the same run as from files, resumed from its folder."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from aang import Run, train
from datasets import ClassLabel, Dataset, DatasetDict

from aang_core import AangError, ConfigError, DataError
from tests.support.runs import GivenData, TrainConfig
from tests.training.resuming import everything, lines


def read(path: Path) -> pd.DataFrame:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pd.DataFrame(records)


@pytest.fixture
def small(encoder: Path, task_files: Path) -> dict[str, Any]:
    """The options of a short training, without its data."""
    return {
        **{"model": str(encoder), "max_length": 32, "steps": 8, "eval_every": 4},
        **{"batch_size": 4, "dev_batch_size": 4, "aux_batch_size": 4, "checkpoint_every": 0},
        **{"space": "x+y+z", "weighter": "factored", "precision": "fp32", "quiet": True},
    }


def without_places(run: Path) -> dict[str, Any]:
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    return {**everything(run), "digest": data["digest"], "parts": data["parts"]}


@pytest.mark.full
def test_the_same_run_as_from_files(
    small: dict[str, Any], task_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, moved, and resumed in a new process, which finds the copy in the folder."""
    monkeypatch.chdir(tmp_path)
    files = {name: task_files / f"{name}.jsonl" for name in ("train", "dev", "test")}
    lines_of_domain = (task_files / "domain.txt").read_text(encoding="utf-8").splitlines()
    halves = zip(lines_of_domain[::2], lines_of_domain[1::2], strict=True)
    texts = ["\n\n".join(two) for two in halves]  # of two paragraphs, but one text each
    domain = tmp_path / "domain.json"
    domain.write_text(json.dumps([{"text": text} for text in texts]), encoding="utf-8")
    small |= {"space": "td+ed", "set": {"factored": {"n": 2}}}
    whole = train(**small, **files, domain=domain, out=tmp_path / "whole")
    frames = {name: read(path) for name, path in files.items()}
    stop_after(tmp_path / "stopped", rounds=3)
    with pytest.raises(KeyboardInterrupt) as stopped:
        train(
            **small,
            train=frames["train"],
            dev=Dataset.from_pandas(frames["dev"]),
            test=(frames["test"]["text"], frames["test"]["label"]),
            domain=texts,
            out="stopped",
        )
    assert stopped.value.__notes__ == ["To continue: train(resume='stopped')"]
    kept = sorted(path.name for path in (tmp_path / "stopped" / "data").iterdir())
    assert kept == ["dev.jsonl", "domain.json", "test.jsonl", "train.jsonl"]
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(tmp_path / "stopped", moved)
    command = [sys.executable, "-m", "aang_core", "train", "--resume", str(moved), "--quiet"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # as here, or sums are rounded otherwise
    done = subprocess.run(
        command, capture_output=True, text=True, cwd="/", env=one_thread, check=False
    )
    assert done.returncode == 0, done.stderr
    assert without_places(moved) == without_places(whole.folder)
    assert Run.open(moved).options["train"] == str(moved / "data" / "train.jsonl")


def stop_after(run: Path, rounds: int) -> None:
    """Interrupt this process, as the stop button of a notebook does, after some rounds."""

    def wait() -> None:
        while lines(run / "weights.jsonl") < rounds:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def test_resume_from_python(small: dict[str, Any], task_files: Path, tmp_path: Path) -> None:
    frame = read(task_files / "train.jsonl")
    stop_after(tmp_path / "run", rounds=2)
    with pytest.raises(KeyboardInterrupt):
        train(**small, train=frame, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="resume=: an interrupted run continues with its own"):
        train(resume=tmp_path / "run", steps=3)
    assert train(resume=tmp_path / "run", quiet=True).result["steps"] == 8
    with pytest.raises(ConfigError, match="the run has finished"):
        train(resume=tmp_path / "run")


@pytest.mark.full
def test_a_dataset_dict_in_memory_and_on_disk(
    small: dict[str, Any], task_files: Path, tmp_path: Path
) -> None:
    """Class ids become names; the folder of ``save_to_disk`` needs no copy."""
    small = {**small, "weighter": "single-task", "steps": 1}
    splits = {}
    names = sorted(set(read(task_files / "train.jsonl")["label"]))
    for part, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
        frame = read(task_files / f"{part}.jsonl")[["text", "label"]]
        frame["label"] = frame["label"].map(names.index)
        splits[split] = Dataset.from_pandas(frame).cast_column("label", ClassLabel(names=names))
    data = DatasetDict(splits)
    in_memory = train(**small, train=data, out=tmp_path / "a")
    data.save_to_disk(tmp_path / "saved")
    on_disk = train(**small, train=tmp_path / "saved", out=tmp_path / "b")
    parts = [run.records.data.parts for run in (in_memory, on_disk)]
    assert parts[0] == parts[1]
    assert set(parts[0]["dev"].labels) == set(names)
    assert not (tmp_path / "b" / "data").exists()
    data["train"].save_to_disk(tmp_path / "one")
    single = train(**small, train=tmp_path / "one", dev=data["validation"], out=tmp_path / "c")
    assert single.records.data.parts["train"] == parts[0]["train"]
    with pytest.raises(ConfigError, match="this DatasetDict has its own splits; leave dev out"):
        train(**small, train=data, dev=data["test"])


def test_rows_of_zeros_and_ones_from_training_to_scores(
    small: dict[str, Any], tmp_path: Path
) -> None:
    """The saved model knows that they are places, and in which order."""
    texts, marks = 6 * ["a red car", "a blue car", "a dog"], 6 * [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    run = train(
        **{**small, "weighter": "single-task", "steps": 1},
        train=(texts, np.array(marks)),
        label_names="vehicle,animal,coloured",
        out=tmp_path / "run",
    )
    names = ["vehicle", "animal", "coloured"]
    assert list(run.predict(texts[:1]).columns) == [
        "predicted",
        *(f"P({name})" for name in names),
    ]
    assert run.records.data.parts["train"].labels.keys() == set(names)
    scores = Run.open(run.folder).evaluate((texts, marks))
    assert [scores.classes.loc[name, "examples"] for name in names] == [12, 6, 6]
    written = tmp_path / "written.csv"
    pd.DataFrame({"text": texts, "label": marks}).to_csv(written, index=False)
    assert run.evaluate(written).scores == scores.scores
    with pytest.raises(DataError, match=r"data list, row 0: .* are 3 zeros and ones"):
        run.evaluate((["a car"], [[1, 0]]))


def test_the_folder_is_named_after_what_is_trained(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sets of classes cannot have the default recipe, after which it would be named."""
    monkeypatch.chdir(tmp_path)
    options = {n: value for n, value in small.items() if n not in ("space", "weighter")}
    data = (8 * ["a red car", "a blue car", "a dog"], 8 * [["red", "car"], ["car"], []])
    run = train(**{**options, "steps": 1}, train=data)
    assert run.folder == Path("runs/data-td-factored-seed0")
    copy = tmp_path / run.folder / "data" / "train.jsonl"
    assert copy.is_file()
    assert Run.open(run.folder).options["train"] == str(copy)
    assert [path.name for path in Path("runs").iterdir()] == [run.folder.name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": [1, 2, 3]}, "train: this list is not data that AANG reads; give a file, a pan"),
        ({"train": (["a", "b"], ["x"])}, "train list: the columns differ in length"),
        ({"train": (["a", "b"], ["x", 1])}, "train list: column 'label' mixes strings (row 0"),
        ({"train": pd.DataFrame({"body": ["a"]})}, "Name the right one with text=."),
        ({"unlabelled": ["a text", "b.txt"]}, "'b.txt' looks like a file and 'a text' like a text"),
        ({"domain": 3}, "domain: this int is not data that AANG reads"),
        ({"out_of_domain": pd.DataFrame()}, "out_of_domain: takes files only, not a DataFrame"),
        ({"lable": "x"}, "lable: there is no such option; did you mean label?"),
        ({"quite": True}, "quite: there is no such option; did you mean quiet?"),
        ({"eval_every": 0}, "eval_every=0: input should be greater than 0"),
        ({"dev": (["a"], ["x"])}, "dev= and test= are files that go with train="),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Each is refused before a model is loaded, and no folder is left."""
    data = (4 * ["one text", "another text"], 4 * ["x", "y"])
    if "dev" not in arguments:
        arguments = {"train": data, **arguments}
    with pytest.raises(AangError, match=re.escape(message)):
        train(**arguments, space="x+y+z", quiet=True, out=tmp_path / "run", model="no-such-model")
    assert not (tmp_path / "run").exists()


def test_text_that_nothing_reads(tmp_path: Path) -> None:
    """The message calls it what the user gave, not the file that would hold its copy."""
    data = (4 * ["one text", "another text"], 4 * ["x", "y"])
    with pytest.raises(ConfigError, match=r"^domain list: nothing in this run reads it; "):
        train(train=data, domain=["a text", "more text"], quiet=True, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_row_of_domain_text_is_a_text(
    small: dict[str, Any], task_files: Path, tmp_path: Path
) -> None:
    """Also one of several paragraphs, in memory as in a Parquet file."""
    frame = pd.DataFrame({"text": [f"first line {i}.\n\nsecond line {i}" for i in range(9)]})
    frame.to_parquet(tmp_path / "domain.parquet")
    small |= {"space": "td+ed", "set": {"factored": {"n": 2}}, "steps": 1}
    digests = []
    for number, domain in enumerate([frame, tmp_path / "domain.parquet"]):
        run = train(
            **small, train=task_files / "train.jsonl", domain=domain, out=tmp_path / f"{number}"
        )
        digests.append(json.loads((run.folder / "data.json").read_text(encoding="utf-8"))["parts"])
    assert digests[0] == digests[1]


def test_names_of_files_and_texts_are_told_apart(tmp_path: Path) -> None:
    """Texts are read from memory, and what looks like a file stays an option."""
    spaced = tmp_path / "a file"
    spaced.touch()
    for names in (["no-such.txt"], ("a/b.jsonl", "*.csv"), [str(spaced)], [spaced], ["rest"]):
        assert GivenData.of({"unlabelled": names}).options == {"unlabelled": names}
    # No name can have more than 255 bytes, of which this text has 400.
    texts = ["ж" * 200, "another"]
    given = GivenData.of({"unlabelled": texts, "domain": pd.Series(["a", "b"])})
    assert given.options == {"unlabelled": "data/unlabelled.jsonl", "domain": "data/domain.json"}
    assert set(given.values) == {"unlabelled", "domain"}


def test_records_of_domain_text_may_have_the_columns_of_the_task(tmp_path: Path) -> None:
    records = [{"body": "a", "text": "z"}, {"body": None, "text": "b"}]
    given = GivenData.of({"text": "body", "domain": records})
    placed = given.placed(TrainConfig(text="body", domain=("data/domain.json",)), tmp_path)
    table, wanted = given.tables(placed)["domain"]
    assert json.loads(table.copy(wanted, array=True)) == [{"text": "a"}, {"text": "b"}]


def test_what_a_run_predicts_and_scores(
    small: dict[str, Any], task_files: Path, tmp_path: Path
) -> None:
    """Run.predict and Run.evaluate on test give the scores of the run's own test part."""
    small = {**small, "weighter": "single-task"}
    test = read(task_files / "test.jsonl").set_index(pd.RangeIndex(100, 140))
    run = train(**small, train=read(task_files / "train.jsonl"), test=test, out=tmp_path / "run")
    found = run.predict(test)
    assert found.index.tolist() == test.index.tolist()
    labels = run.records.evaluation.labels
    assert found.columns.tolist() == ["predicted", *(f"P({label})" for label in labels)]
    assert found.filter(like="P(").sum(axis=1).tolist() == pytest.approx([1.0] * len(test))
    assert run.predict(test["text"].tolist())["predicted"].tolist() == found["predicted"].tolist()
    assert (
        run.predict(test["text"].iloc[0])["predicted"].tolist() == found["predicted"].tolist()[:1]
    )
    for file in (task_files / "test.jsonl", str(task_files / "test.jsonl")):
        assert run.predict(file)["predicted"].tolist() == found["predicted"].tolist()
    for apply in (run.predict, run.evaluate):
        with pytest.raises(DataError, match="there is no column 'text', which the classifier"):
            apply(test.rename(columns={"text": "body"}))
    # Although the data has a column "label" itself.
    assert test.join(found)["predicted"].tolist() == found["predicted"].tolist()
    twice = pd.concat([test, test])
    with pytest.warns(UserWarning, match="the index holds 100 more than once"):
        again = run.predict(twice)
    beside = pd.concat([twice, again], axis=1)
    assert beside["predicted"].tolist() == 2 * found["predicted"].tolist()
    scores = run.evaluate(test)
    own = run.records.evaluation.test
    assert scores.scores == pytest.approx(dict(own.scores))
    assert scores.confusion.to_numpy().tolist() == own.confusion
    assert scores.classes["examples"].sum() == len(test)
    assert run.evaluate(task_files / "test.jsonl").scores == scores.scores
    assert "test" not in repr(scores)
    with pytest.raises(AangError, match="data list: no row has a class that can be predicted"):
        run.evaluate((["x"], ["none"]))
    with pytest.raises(AangError, match="data list, row 1: column 'text' holds 3, which is not"):
        run.predict(["x", 3])
    first, second, third = repr(run).splitlines()
    assert first.startswith(f"Run {run.folder}: single-task, seed 0, 8 steps in ")
    assert second.startswith(f"macro-f1: dev {100 * run.outcome.metric.dev:.2f} (")
    assert third == f"0 objectives; model in {run.folder / 'model'}"
