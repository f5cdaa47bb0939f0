"""Runs that are killed at random moments: a few of the many that the benchmark makes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kill_resume import CASES, DISTURBED, contents
from benchmarks.small_task import wordpiece_vocabulary

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]


def kill_resume(out: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.kill_resume", str(out), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
    )


def chains_of(case: Path) -> list[dict[str, int]]:
    return [json.loads(line) for line in (case / "chains.jsonl").read_text().splitlines()]


def test_a_few_kills(tmp_path: Path) -> None:
    """In DIW, whose rounds are long; and a difference of one bit would have been seen."""
    done = kill_resume(
        *(tmp_path, "--case", "diw", "--kills", "3", "--most", "3", "--together", "10")
    )
    assert done.returncode == 0, done.stderr
    assert "two processes resumed a killed run at once 10 times: 0 times both" in done.stdout
    chains = chains_of(tmp_path / "diw")
    assert sum(chain["kills"] for chain in chains) == 3
    assert all(chain["identical"] for chain in chains)
    assert "| diw |" in done.stdout
    alone = tmp_path / "diw" / "alone"
    before = contents(alone)
    assert "checkpoint/state.safetensors" in before
    for name in ("model/model.safetensors", "weights.jsonl"):
        content = bytearray((alone / name).read_bytes())
        content[-2] ^= 1
        (alone / name).write_bytes(content)
        assert contents(alone) != before
        before = contents(alone)


def test_changes_between_kills(tmp_path: Path) -> None:
    """Other data is refused; other threads and another working directory change nothing."""
    done = kill_resume(
        *(tmp_path, "--case", DISTURBED, "--kills", "3", "--most", "3", "--together", "0")
    )
    assert done.returncode == 0, done.stderr
    case = tmp_path / DISTURBED.replace(", ", "-")
    assert all(chain["identical"] for chain in chains_of(case))
    log = (case / "log.txt").read_text()
    assert "the data has changed" in log


def test_kills_in_every_case(tmp_path: Path) -> None:
    done = kill_resume(tmp_path, "--kills", "4", "--most", "4")
    assert done.returncode == 0, done.stderr
    for case in CASES:
        chains = chains_of(tmp_path / case.replace(", ", "-"))
        assert sum(chain["kills"] for chain in chains) == 4, case
        assert all(chain["identical"] for chain in chains), case


def test_the_vocabulary_of_the_small_encoder_is_always_the_same() -> None:
    """Whatever order words come in: other tokens would make each run of a test another test."""
    words = ["parser", "tree", "encoder", "parser", "text", "domain", "tree", "text"]
    vocabulary = wordpiece_vocabulary(words, 40)
    assert vocabulary == wordpiece_vocabulary(words[::-1], 40)
    assert list(vocabulary)[-5:] == ["parser", "text", "tree", "domain", "encoder"]
