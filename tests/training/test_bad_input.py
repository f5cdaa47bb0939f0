"""Bad input to ``aang train`` and ``aang evaluate``: a clear message, status 2, no files left."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.conftest import Aang

GOOD = '{"text": "a paragraph about parsing", "label": "email"}\n'


@dataclass(frozen=True)
class Case:
    """Options that replace or follow the good ones, and what the message must name."""

    options: Callable[[Path], list[object]]
    names: list[str]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


CASES = {
    "missing file": Case(lambda d: ["--train", d / "none.jsonl"], ["none.jsonl"]),
    "malformed JSON": Case(
        lambda d: ["--train", write(d, "bad.jsonl", GOOD + "{oops\n")], ["bad.jsonl:2"]
    ),
    "missing column": Case(lambda d: ["--text", "body"], ["'body'", "'text'", "'label'", "--text"]),
    "empty text": Case(
        lambda d: ["--train", write(d, "e.jsonl", GOOD + '{"text": " ", "label": "xml"}\n')],
        ["e.jsonl:2", "'text'", "empty"],
    ),
    "no label in dev that train has": Case(
        lambda d: ["--dev", write(d, "dev.jsonl", '{"text": "something", "label": "emall"}\n')],
        ["dev.jsonl", "no row has a class that can be predicted", "'email'", "'emall'"],
    ),
    "no label in test that train has": Case(
        lambda d: ["--test", write(d, "test.jsonl", '{"text": "something", "label": "new"}\n')],
        ["test.jsonl", "'new'", "--label"],
    ),
    "one class only": Case(
        lambda d: ["--train", write(d, "one.jsonl", GOOD * 5)], ["one.jsonl", "'email'"]
    ),
    "empty dev": Case(lambda d: ["--dev", write(d, "dev.jsonl", "")], ["dev.jsonl"]),
    "a folder that is no model": Case(lambda d: ["--model", d], ["--model", "config.json"]),
    "a file that is no model": Case(
        lambda d: ["--model", write(d, "model.bin", "x")], ["--model", "model.bin"]
    ),
    "a model folder without a model": Case(
        lambda d: ["--model", write(d, "config.json", '{"model_type": "bert"}').parent],
        ["--model"],
    ),
    "unknown space": Case(lambda d: ["--space", "tdd"], ["tdd", "did you mean td"]),
    "unknown weighter": Case(
        lambda d: ["--weighter", "factord"], ["factord", "did you mean factored"]
    ),
    "unknown primitive in a space": Case(
        lambda d: [
            "--space",
            write(
                d,
                "mine.yaml",
                "name: mine\ndata: [task]\ntransform: [mask, span-mask]\n"
                "representation: [bidirectional]\noutput: [denoise]\n",
            ),
        ],
        ["mine.yaml", "span-mask"],
    ),
    "unknown option of a weighter": Case(
        lambda d: ["--set", "factored.rate=1"], ["factored", "rate", "end_task_lr"]
    ),
    "bad value of a weighter's option": Case(
        lambda d: ["--set", "factored.lr=fast"], ["lr", "fast"]
    ),
    "a bandit whose rounds are longer than the run": Case(
        lambda d: ["--weighter", "factored-bandit"], ["rounds of 10 steps", "has 6", "--steps 10"]
    ),
    "a bandit whose rounds have no step": Case(
        lambda d: ["--weighter", "autosem", "--set", "autosem.k=0"], ["option k is 0", "1 or more"]
    ),
    "setting of a primitive that is not used": Case(
        lambda d: ["--set", "static.n=1"], ["static", "factored"]
    ),
    "malformed setting": Case(lambda d: ["--set", "lr=1"], ["--set lr=1", "NAME.OPTION=VALUE"]),
    "unknown key in the config file": Case(lambda d: [write(d, "c.yaml", "stepz: 3\n")], ["stepz"]),
    "config file that is not YAML": Case(
        lambda d: [write(d, "c.yaml", "a: 1\n  b: {\n")], ["c.yaml:2"]
    ),
    "config file that is missing": Case(lambda d: [d / "none.yaml"], ["none.yaml"]),
    "value out of range": Case(lambda d: ["--steps", 0], ["--steps", "0"]),
    "no room for text": Case(lambda d: ["--max-length", 2], ["--max-length 2"]),
    "dev without train": Case(lambda d: ["--dataset", "imdb"], ["--train", "--dataset"]),
    "unknown device": Case(lambda d: ["--device", "warp"], ["--device warp"]),
    "domain text that is missing": Case(
        lambda d: ["--space", "td+ed", "--domain", d / "none"], ["none"]
    ),
    "meta fraction that leaves classes out": Case(
        lambda d: ["--meta-fraction", 0.01], ["--meta-fraction 0.01"]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_told_in_one_clear_message(
    aang: Aang, train_options: list[object], tmp_path: Path, name: str
) -> None:
    """Exit status 2, the culprit named, no traceback, and no run folder."""
    case, run = CASES[name], tmp_path / "run"
    (tmp_path / "files").mkdir()
    done = aang("train", *train_options, *case.options(tmp_path / "files"), "--out", run)
    assert done.status == 2, done.err
    assert "Traceback" not in done.err
    for part in case.names:
        assert part in done.err
    assert not run.exists()


def test_a_run_folder_is_never_overwritten(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "thesis.txt").write_text("mine")
    done = aang("train", *train_options, "--out", run)
    assert done.status == 2
    assert str(run) in done.err
    assert [p.name for p in run.iterdir()] == ["thesis.txt"]


def test_long_texts_are_cut_counted_and_told(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    long = {"text": "parse the message " * 200, "label": "email"}
    train = tmp_path / "train.jsonl"
    content = (task_files / "train.jsonl").read_text(encoding="utf-8")
    train.write_text(content + json.dumps(long) + "\n", encoding="utf-8")
    run = tmp_path / "run"
    done = aang("train", *train_options, "--train", train, "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    assert "longer than 48 tokens" in done.err


def test_a_name_two_plugins_own_must_be_picked(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Where a user types the short name, the error names both; ``distribution:name`` trains."""
    plugin = tmp_path / "my_masks.py"
    plugin.write_text(
        "from aang_core import Corruption, hookimpl, select_tokens\n"
        "class Mine:\n"
        "    def __call__(self, ids, ordinary, vocabulary, generator):\n"
        "        selected = select_tokens(ordinary, generator)\n"
        "        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)\n"
        "@hookimpl\n"
        "def aang_register_transforms(register):\n"
        "    register('mask', 'a mask of my own', Mine)\n",
        encoding="utf-8",
    )
    run = tmp_path / "run"
    space = tmp_path / "mine.yaml"
    text = (
        "name: mine\ndata: [task]\ntransform: ['{}']\n"
        "representation: [bidirectional]\noutput: [denoise]\n"
    )
    space.write_text(text.format("mask"), encoding="utf-8")
    done = aang("--plugin", plugin, "train", *train_options, "--space", space, "--out", run)
    assert done.status == 2
    assert "aang-plugin-bert:mask" in done.err
    space.write_text(text.format("aang-plugin-bert:mask"), encoding="utf-8")
    done = aang(
        *("--plugin", plugin, "train", *train_options),
        *("--space", space, "--steps", 2, "--out", run, "--quiet"),
    )
    assert done.status == 0, done.err
    weights = json.loads((run / "weights.jsonl").read_text().splitlines()[0])["weights"]
    assert list(weights) == ["task/aang-plugin-bert:mask/bidirectional/denoise"]


def test_evaluate_refuses_what_is_no_finished_run(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """A folder that is not a run, an unfinished run, labels that the model does not have."""
    data = task_files / "test.jsonl"
    done = aang("evaluate", tmp_path, "--data", data)
    assert done.status == 2
    assert "config.yaml" in done.err
    run = tmp_path / "run"
    assert aang("train", *train_options, "--steps", 1, "--out", run, "--quiet").status == 0
    strange = write(tmp_path, "strange.jsonl", '{"text": "a", "label": "strange"}\n')
    done = aang("evaluate", run, "--data", strange)
    assert done.status == 2
    assert "strange.jsonl: no row has a class that can be predicted" in done.err
    (run / "result.json").unlink()
    done = aang("evaluate", run, "--data", data)
    assert done.status == 2
    assert "aang train --resume" in done.err
