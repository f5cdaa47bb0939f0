"""What may be written after ``--search NAME=``."""

import pytest
from aang_plugin_tune.dimensions import Choices, Range, read_dimension

from aang_core import ConfigError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1e-5,1e-4", Choices((1e-5, 1e-4))),
        ("contrast, td+ed", Choices(("contrast", "td+ed"))),
        ("true,false", Choices((True, False))),
        ("null,3", Choices((None, 3))),
        ([[1, 2], [3]], Choices(([1, 2], [3]))),
        (7, Choices((7,))),
        ("1e-5..1e-3", Range(1e-5, 1e-3)),
        ("1e-5..1e-3:log", Range(1e-5, 1e-3, log=True)),
        ("8..64", Range(8, 64)),
        ("8..64:8", Range(8, 64, step=8)),
        ("8..61:8", Range(8, 56, step=8)),
        ("0..0.3:0.1", Range(0.0, 0.3, step=0.1)),
        ("1e-13..7e-13:2e-13", Range(1e-13, 7e-13, step=2e-13)),
        ("-1..1.5", Range(-1.0, 1.5)),
        ("./a.yaml,./b.yaml", Choices(("./a.yaml", "./b.yaml"))),
        ("../a.yaml,../b.yaml", Choices(("../a.yaml", "../b.yaml"))),
    ],
)
def test_what_is_meant(text: object, meant: Choices | Range) -> None:
    assert read_dimension(text, "--search x") == meant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no value to try"),
        ("1e-3..1e-5", "1e-3 is not less than 1e-5"),
        ("3..3", "3 is not less than 3"),
        ("0..1:log", "0 has no logarithm"),
        ("low..high", "'low' is not a number"),
        ("1..8:0", "the step 0 is not a whole number above 0 and at most 7"),
        ("1..8:1.5", "the step 1.5 is not a whole number"),
        ("1..8:9", "at most 7"),
        ("1...inf", "is not a number"),
        ("1e-4,1e-4", "0.0001 is given twice"),
        ("2020-01-01,1", "give values such as"),
        (".nan,1", "give values such as"),
        ("[", "--search x"),
    ],
)
def test_what_is_refused(text: object, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_dimension(text, "--search x")
    assert "--search x" in str(refused.value)
    assert told in str(refused.value)
