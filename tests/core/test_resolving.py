"""Options from Python that have another form."""

from pathlib import Path
from typing import Any

import pytest

from aang_core import ConfigError
from tests.support.runs import resolve_config


@pytest.mark.parametrize("given", ["tapt.steps=2", ["tapt.steps=2"], {"tapt": {"steps": 2}}])
def test_options_of_primitives_in_a_file(given: object) -> None:
    """A mapping, or what stands on the command line."""
    assert resolve_config({"set": given}, {}).set == {"tapt": {"steps": 2}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"set": {"tapt": ["steps=2"]}},
            r"^--set \{'tapt': .*give it as in \{factored: \{lr: 0.5\}\}$",
        ),
        ({"set": 5}, "^--set 5: give NAME.OPTION=VALUE"),
        (
            {"class_weights": ["x=-2"]},
            r"^--class-weights \['x=-2'\]: give balanced, or NAME=WEIGHT",
        ),
        ({"class_weights": ["balanced", "x=2"]}, r"give balanced, or NAME=WEIGHT"),
        ({"class_weights": {"x": "much"}}, r"^--class-weights \{'x': 'much'\}: give balanced, or"),
        ({"domain": {"a": 1}}, r"^--domain \{'a': 1\}: should be a text or a list of texts$"),
    ],
)
def test_an_option_of_another_form_says_which_it_takes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve_config(given, {})


def test_a_number_in_a_file_is_a_name() -> None:
    """And a class weight may stand as on the command line."""
    config = resolve_config({"domain": 5, "class_weights": ["a=b=2"]}, {})
    assert config.domain == ("5",)
    assert config.class_weights == {"a=b": 2.0}
    assert resolve_config({"class_weights": ["balanced"]}, {}).class_weights == "balanced"


def test_paths_stand_for_their_names() -> None:
    """As :mod:`pathlib` gives them, also in lists, such as those of a glob."""
    several: dict[str, Any] = {
        name: [Path("a.txt"), "b.txt"] for name in ("domain", "out_of_domain", "unlabelled")
    }
    one = {name: Path("a/b") for name in ("model", "dataset")}
    config = resolve_config({}, {**several, **one, "space": Path("s.yaml"), "weighter": "static"})
    assert config.domain == config.out_of_domain == config.unlabelled == ("a.txt", "b.txt")
    assert (config.model, config.dataset, config.space) == ("a/b", "a/b", "s.yaml")


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No shell replaces the tilde of ``--train=~/data.jsonl``, and none sees those from Python."""
    monkeypatch.setenv("HOME", str(tmp_path))
    config = resolve_config(
        {"train": "~/t.jsonl", "dev": Path("~/d.jsonl")},
        {"model": "~/m", "aux_task": {"rte": "~/r.jsonl"}, "out": "~"},
    )
    assert (config.train, config.dev) == (tmp_path / "t.jsonl", tmp_path / "d.jsonl")
    assert (config.model, config.out) == (str(tmp_path / "m"), tmp_path)
    assert config.aux_task == {"rte": tmp_path / "r.jsonl"}
    with pytest.raises(ConfigError, match=r"^--train .*there is no such home folder"):
        resolve_config({}, {"train": "~nobody-of-this-name/t.jsonl"})
