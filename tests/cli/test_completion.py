"""What a shell is offered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def offered(*words: str) -> list[str]:
    """What bash would offer for the last of the words."""
    environment = {
        **os.environ,
        "_AANG_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["aang", *words]),
        "COMP_CWORD": str(len(words)),
    }
    script = Path(sys.executable).parent / "aang"
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train", "--weighter", "meta"), ["plain,meta-tartan"]),
        (("train", "--recipe", "dapt"), ["plain,dapt", "plain,dapt+tapt"]),
        (("train", "--space", "td-"), ["plain,td-labels"]),
        (("train", "--space", "my-spaces/"), ["file,my-spaces/"]),
        (("train", "--domain", "te"), ["file,te"]),
        (("train", "--precision", "bf"), ["plain,bf16"]),
        (("diagnose", "--weighter", "stat"), ["plain,static"]),
        (("prepare-d",), ["plain,prepare-domain"]),
    ],
)
def test_values_that_plugins_have_registered(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected
