"""The benchmark of overlaps finds what it plants."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.overlap import PLANTED, main

pytestmark = pytest.mark.release


def test_little_text_has_all_planted_overlaps(tmp_path: Path) -> None:
    """Even if it has fewer texts than overlaps."""
    domain, held_out = tmp_path / "domain.jsonl", tmp_path / "dev.jsonl"
    domain.write_text(json.dumps({"text": "It rains in the north. " * 60}) + "\n")
    held_out.write_text(json.dumps({"text": "Nine words of a text that nobody has read"}) + "\n")
    done = CliRunner().invoke(main, [str(domain), str(held_out), "--megabytes", "1"])
    assert done.exit_code == 0, done.output
    assert f"1 held-out texts; {PLANTED} of {PLANTED} planted overlaps found" in done.output
