"""The message about a failed run."""

from pathlib import Path

import pytest
from aang_plugin_compare.launcher import Order


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("step 1\nError: no room\nTo go on:\n    aang train --resume r\n", "Error: no room"),
        ("Traceback\nValueError: odd\n", "ValueError: odd"),
        ("", "it said nothing"),
    ],
)
def test_its_last_words(tmp_path: Path, said: str, words: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(said, encoding="utf-8")
    order = Order("a/b/seed-0", tmp_path / "r", tmp_path / "r.yaml", log)
    assert order.failure(2) == f"{words} (exit status 2; {log})"
    assert order.failure(2, "n1") == f"{words} (exit status 2 on n1; {log})"
