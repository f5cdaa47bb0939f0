"""Untrusted YAML: sizes are limited, and every mistake is reported with its place."""

from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from aang_core import ConfigError
from tests.support.runs import TrainConfig, parse_settings, read_config_file
from tests.support.storage import parse_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in pairwise("abcdefghi")
)


@pytest.mark.parametrize("content", [LAUGHS, "a: &a [*a]", "a: &a {b: *a}", "&a [*a]"])
def test_aliases_that_explode_are_refused(content: str) -> None:
    """What loads in no time would take for ever to walk through."""
    with pytest.raises(ConfigError, match=r"^f\.yaml.*(20000 values|RecursionError)"):
        parse_yaml(content, "f.yaml")


def test_aliases_may_be_used() -> None:
    value, _ = parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}", "f.yaml")
    assert value == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    "content",
    ["a: 2001-99-99", "? [1]\n: 2", "[" * 1500, "a: 1\na: 2", "\x00", "a: !!python/name:os.system"],
)
def test_a_configuration_that_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"c\.yaml"):
        read_config_file(path)
    with pytest.raises(ConfigError, match=r"--set a\.b="):
        parse_settings([f"a.b={content}"])


def test_an_option_that_is_spelt_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("batch_size: 8\nbatch-size: 16\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="gives batch_size twice"):
        read_config_file(path)


def test_a_configuration_of_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("- a\n" * 100_000)
    with pytest.raises(ConfigError, match="larger than 250000 bytes"):
        read_config_file(path)


def test_a_configuration_in_utf_16(tmp_path: Path) -> None:
    """As Windows' editors write it."""
    path = tmp_path / "c.yaml"
    path.write_text("lr: 1e-4\ntext: größe\n", encoding="utf-16")
    assert read_config_file(path) == {"lr": 1e-4, "text": "größe"}


def test_text_that_begins_as_a_number_is_text(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("lr: 1e-4\nmodel: 1e-5-rates\n", encoding="utf-8")
    assert read_config_file(path) == {"lr": 1e-4, "model": "1e-5-rates"}


def test_options_have_a_largest_number() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1000000000"):
        TrainConfig(steps=10**10)
    assert TrainConfig(seed=2**63 - 1, steps=10**9).steps == 10**9
