"""Options that name text: their paths are checked, and an option that nothing reads is refused."""

import re
from pathlib import Path

import pytest

from aang_core import ConfigError, DataError, load_plugins
from tests.support.runs import prepare_sources, resolve_config, without_unread_text
from tests.training.conftest import Aang


@pytest.mark.parametrize("option", ["--domain", "--out-of-domain", "--unlabelled"])
def test_a_path_is_checked_whether_it_is_read_or_not(
    aang: Aang, train_options: list[object], tmp_path: Path, option: str
) -> None:
    run = tmp_path / "run"
    done = aang("train", *train_options, option, tmp_path / "nowhere", "--out", run)
    assert done.status == 2
    assert f"Error: {option} {tmp_path / 'nowhere'}: no such file or folder" in done.err
    assert not run.exists()


@pytest.mark.parametrize(
    ("option", "space", "said"),
    [
        ("--domain", "bert-style", "the data s2orc would, as in --space td+ed or "),
        ("--out-of-domain", "td+ed", "the data out-of-domain would, as in --space full or "),
        ("--unlabelled", "td", "the data unlabelled would, as in --space full or td+u"),
    ],
)
def test_an_option_that_nothing_reads_is_refused(
    aang: Aang, train_options: list[object], task_files: Path, option: str, space: str, said: str
) -> None:
    """The message names the data that reads it, and a space that has this data."""
    text = task_files / "domain.txt"
    done = aang("train", *train_options, "--space", space, option, text)
    assert done.status == 2
    assert f"Error: {option} {text}: nothing in this run reads it; {said}" in done.err
    # Before anything takes long: not even that line is printed.
    assert "reading data" not in done.err


def test_a_weighter_that_trains_the_end_task_alone_reads_no_text(
    aang: Aang, train_options: list[object], domain: list[object]
) -> None:
    options = [*train_options, *domain, "--space", "td+ed", "--weighter", "single-task"]
    done = aang("train", *options)
    assert done.status == 2
    assert "reads it, since single-task trains the end task alone; " in done.err


def test_from_python_too(task_files: Path) -> None:
    registry = load_plugins().registry
    text = str(task_files / "domain.txt")
    train = task_files / "train.jsonl"
    config = resolve_config({"train": train, "domain": text}, {}, registry)
    with pytest.raises(ConfigError, match=r"--domain .* nothing in this run reads it"):
        prepare_sources(config, registry)
    config = resolve_config({"train": train, "domain": "none"}, {}, registry)
    with pytest.raises(DataError, match=re.escape("--domain none: no such file or folder")):
        prepare_sources(config, registry)


def test_the_model_of_a_run_is_offered(
    aang: Aang, train_options: list[object], encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model").symlink_to(encoder)
    done = aang("train", *train_options, "--model", tmp_path / "run")
    assert done.status == 2
    assert f"It holds a run, whose model is {tmp_path / 'run' / 'model'}" in done.err


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"space": "td+ed"}, ("domain",)),
        ({"space": "td+ed", "weighter": "single-task"}, ()),
        ({"recipe": "dapt"}, ("domain",)),
        ({"space": "full"}, ("domain", "out_of_domain", "unlabelled")),
        ({"space": "td+u", "aux_task": {"more": "more.jsonl"}}, ("unlabelled",)),
        ({"aux_task": {"more": "more.jsonl"}}, ()),
    ],
)
def test_text_offered_to_several_methods_stays_with_those_that_read_it(
    options: dict[str, object], kept: tuple[str, ...]
) -> None:
    registry = load_plugins().registry
    texts = dict.fromkeys(("domain", "out_of_domain", "unlabelled"), ("a.txt",))
    config = resolve_config({"train": "train.jsonl", **texts, **options}, {}, registry)
    left = without_unread_text(config, registry)
    assert tuple(name for name in texts if getattr(left, name)) == kept


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": True}, "should be a number, not true"),
        ({"lr": False}, "should be a number, not false"),
        ({"train": "a.csv", "text": "says", "label": "says"}, "--label says is a column of texts"),
        ({"train": "a.csv", "text": "says", "text_pair": "says"}, "both name the column says"),
        ({"train": "a.csv", "label_names": {"a": 1}}, "should be a text or a list of texts"),
        ({"train": "a.csv", "label_names": [False, True, "maybe"]}, "put it in quotes"),
    ],
)
def test_what_would_train_on_something_else_is_refused(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        resolve_config({}, options)
