"""Run folders, names and options of strangers: no path leads out, nothing in them is believed."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.plugins import StorageError
from tests.support.storage import RunFolder, locked
from tests.training.conftest import Aang

SECRET = "not yours"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one run of this module goes; made by the first test that needs it."""
    return tmp_path_factory.mktemp("finished") / "run"


@pytest.fixture
def run(aang: Aang, train_options: list[object], finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run of two stages, to be damaged."""
    if not finished.exists():
        options = ["--recipe", "tapt", "--steps", 2, "--eval-every", 1, "--quiet"]
        done = aang("train", *train_options, *options, "--out", finished)
        assert done.status == 0, done.err
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the user outside the run folder."""
    file = tmp_path / "outside.txt"
    file.write_text(SECRET)
    return file


def unfinished(run: Path) -> None:
    """Make it a run that was interrupted."""
    for name in ("result.json", "report.html", "evaluation.json"):
        (run / name).unlink()


LINKS = [
    "weights.jsonl",
    "result.json",
    ".result.json.tmp",
    ".config.yaml.tmp",
    "model",
    "checkpoint",
    ".checkpoint.tmp",
    "pretraining/tapt/metrics.jsonl",
]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, "resume") for name in LINKS),
        *(("result.json", command) for command in ("report", "evaluate", "predict")),
    ],
)
def test_a_link_out_of_a_run_folder_is_refused(
    aang: Aang, run: Path, outside: Path, task_files: Path, name: str, command: str
) -> None:
    """Nothing is written or read through a link, whichever file it replaces."""
    if command == "resume":
        unfinished(run)
    place = run / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(outside if "." in name else outside.parent)
    done = {
        "resume": lambda: aang("train", "--resume", run),
        "report": lambda: aang("report", run),
        "evaluate": lambda: aang("evaluate", run, "--data", task_files / "test.jsonl"),
        "predict": lambda: aang("predict", run, "a text"),
    }[command]()
    assert done.status == 2, done.err
    assert name in done.err
    assert "link" in done.err
    assert outside.read_text() == SECRET
    assert {path.name for path in outside.parent.iterdir()} == {"run", "outside.txt"}


@pytest.mark.parametrize("name", ["result.json", "lock.json", "plugins.json", "checkpoints/x"])
@pytest.mark.parametrize("command", ["resume", "report"])
def test_a_pipe_in_a_run_folder_is_refused(aang: Aang, run: Path, name: str, command: str) -> None:
    """Reading it would wait for ever."""
    if command == "resume":
        unfinished(run)
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    done = aang(*(["train", "--resume", run] if command == "resume" else ["report", run]))
    assert done.status == 2, done.err
    assert f"{name} is a pipe" in done.err


def test_a_lock_that_is_no_file(tmp_path: Path, outside: Path) -> None:
    """A folder without anything else counts as free; nothing is written through a link."""
    lock = tmp_path / "new" / "lock.json"
    lock.parent.mkdir()
    for make in (lock.mkdir, lambda: lock.symlink_to(outside)):
        make()
        for attempt in (lambda: RunFolder.check_free(lock.parent), locked(lock.parent).__enter__):
            with pytest.raises(StorageError, match="cannot write"):
                attempt()
        lock.rmdir() if lock.is_dir() else lock.unlink()
    assert outside.read_text() == SECRET


def test_links_that_stay_inside_and_folders_behind_a_link(
    aang: Aang, run: Path, tmp_path: Path
) -> None:
    """Runs may lie on another disk."""
    (run / "model").rename(run / "kept")
    (run / "model").symlink_to("kept", target_is_directory=True)
    (tmp_path / "shortcut").symlink_to(run, target_is_directory=True)
    assert aang("predict", tmp_path / "shortcut", "a text").status == 0


@pytest.mark.parametrize("place", ["../elsewhere", "/tmp", "model/../../elsewhere"])
def test_a_model_outside_the_run_is_not_loaded(
    aang: Aang, run: Path, task_files: Path, place: str
) -> None:
    shutil.copytree(run / "model", run.parent / "elsewhere")
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"model": place}))
    for arguments in (["predict", run, "x"], ["evaluate", run, "--data", task_files / "dev.jsonl"]):
        done = aang(*arguments)
        assert done.status == 2
        assert "is not in it" in done.err


@pytest.mark.parametrize("content", ['{"model": "../elsewhere"}', '{"model": "/x"}', "[]", "{oops"])
def test_a_stage_does_not_name_a_model_outside(aang: Aang, run: Path, content: str) -> None:
    """``stage.json`` is what a resumed run takes the encoder from."""
    shutil.copytree(run / "model", run.parent / "elsewhere")
    unfinished(run)
    (run / "pretraining" / "tapt" / "stage.json").write_text(content)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 2
    assert "stage.json" in done.err
    assert "damaged" in done.err


def edited(change: Callable[[dict[str, object]], object]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        value = json.loads(text.splitlines()[-1] if text.count("\n{") else text)
        change(value)
        return json.dumps(value) + "\n"

    return edit


def another_digit(text: str) -> str:
    return re.sub(r"[1-8](?=[0-9]{3})", "9", text, count=1)


DAMAGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "another type": ("result.json", lambda text: "[]"),
    "missing key": ("result.json", edited(lambda v: v.pop("metric"))),
    "a metric of its own": (
        "result.json",
        edited(lambda v: v["metric"].update(name="$\\frac$")),  # type: ignore[attr-defined]
    ),
    "nested deeply": ("data.json", lambda text: "[" * 100_000),
    "labels that the rest lacks": ("evaluation.json", edited(lambda v: v.update(labels=["a"]))),
    "null": ("evaluation.json", edited(lambda v: v.update(test=None))),
    "no line": ("metrics.jsonl", lambda text: ""),
    "half a line": ("metrics.jsonl", lambda text: text[:-9]),
    "another score": ("metrics.jsonl", another_digit),
    "losses of a task that is none": (
        "metrics.jsonl",
        lambda text: text.replace('"end-task": ', '"another": '),
    ),
    "another weight": ("weights.jsonl", another_digit),
    "a line less": ("weights.jsonl", lambda text: "".join(text.splitlines(True)[:-1])),
    "a stage that is a path": (
        "weights.jsonl",
        lambda text: text + text.splitlines()[-1][:-1] + ', "factors": {"../x": {}}}\n',
    ),
    "plug-ins that are none": ("plugins.json", lambda text: '{"plugins": [7], "primitives": {}}'),
    "a bomb": (
        "config.yaml",
        lambda text: (
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{n}: &{n} [{', '.join([f'*{p}'] * 9)}]\n"
                for p, n in zip("abcdefg", "bcdefgh", strict=True)
            )
        ),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_a_run_folder_says_is_checked(aang: Aang, run: Path, name: str) -> None:
    file, damage = DAMAGES[name]
    (run / "report.html").unlink()
    (run / file).write_text(damage((run / file).read_text()))
    done = aang("report", run)
    assert done.status == 2, done.out
    assert file in done.err
    assert "Traceback" not in done.err
    assert not (run / "report.html").exists()


def test_half_a_line_of_a_log_is_named(aang: Aang, run: Path) -> None:
    """As a full disk or a copy that was cut off leaves it: file, line and what is wrong there."""
    log = run / "metrics.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:-1], lines[-1][:-9]]))
    done = aang("report", run)
    assert f"metrics.jsonl:{len(lines)}: is damaged: " in done.err


@pytest.mark.parametrize(
    "options",
    [
        ["--aux-task", "../x=FILE"],
        ["--aux-task", "/x=FILE"],
        ["--aux-task", "x/y=FILE"],
        ["--aux-task", "x\n=FILE"],
        ["--target", "../../x"],
        ["--recipe", "../tapt"],
        ["--weighter", "../x"],
        ["--space", "../../x"],
        ["--set", "../x.lr=1"],
    ],
)
def test_names_are_no_paths(
    aang: Aang,
    train_options: list[object],
    task_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    """Refused, and nothing is made anywhere, with the folder of the run left to be named."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    options = [o.replace("FILE", str(task_files / "dev.jsonl")) for o in options]
    done = aang("train", *train_options, *options)
    assert done.status == 2, done.err
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["../x", "/x", "x/y", ".hidden", "..", "x\n", "x" * 101, "\x1b[31m"]
)
@pytest.mark.parametrize("part", ["tasks", "methods"])
def test_names_in_a_comparison_are_no_paths(
    aang: Aang, tmp_path: Path, part: str, name: str
) -> None:
    spec = tmp_path / "spec.yaml"
    content = {"tasks": {"a": {}}, "methods": {"m": {}}, part: {name: {}}}
    spec.write_text(json.dumps(content))
    done = aang("compare", spec, "--out", tmp_path / "comparison")
    assert done.status == 2
    assert "spec.yaml:1" in done.err
    assert "\x1b" not in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


def test_a_comparison_writes_through_no_link(aang: Aang, tmp_path: Path, outside: Path) -> None:
    spec, root = tmp_path / "spec.yaml", tmp_path / "comparison"
    spec.write_text("tasks: {a: {}}\nmethods: {m: {}}\n")
    (root / "runs").mkdir(parents=True)
    (root / "table.txt").symlink_to(outside)
    done = aang("compare", spec, "--out", root, "--table-only")
    assert done.status == 2
    assert "table.txt" in done.err
    assert outside.read_text() == SECRET


def test_a_run_is_named_after_a_file_of_any_name(
    aang: Aang,
    train_options: list[object],
    task_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Control characters and great length do not get into the name of a folder."""
    monkeypatch.chdir(tmp_path)
    train = tmp_path / ("\x1b[31m\u202e" + "x" * 200 + ".jsonl")
    shutil.copy(task_files / "train.jsonl", train)
    done = aang(
        "train", *train_options, "--train", train, "--steps", 1, "--weighter", "single-task"
    )
    assert done.status == 0, done.err
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.isprintable()
    assert run.name.startswith("-[31m-xxx")
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["train", "--resume"], ["evaluate", "--data", __file__], ["new-plugin"]],
    ids=lambda arguments: arguments[0],
)
def test_names_that_no_folder_can_have(aang: Aang, arguments: list[object]) -> None:
    """The system's error about a name is reported without a traceback."""
    name = "a" * 5000
    done = aang(*arguments, name)
    assert done.status == 2
    assert name in done.err
    assert "File name too long" in done.err
    assert "Traceback" not in done.err
