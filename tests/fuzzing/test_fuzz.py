"""A short round of the fuzzer, and every input that it ever broke something with."""

import gzip
from pathlib import Path

import pytest

from benchmarks.fuzz import attempt, in_folder
from benchmarks.fuzzing.mutate import Mutator
from benchmarks.fuzzing.strategies import contents
from benchmarks.fuzzing.targets import TARGETS, Target

pytestmark = pytest.mark.release

REGRESSIONS = sorted(
    path for path in (Path(__file__).parent / "regressions").rglob("*") if path.is_file()
)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_accepted_or_refused(tmp_path: Path, name: str) -> None:
    """Both happen, so the inputs reach past the first check."""
    target = TARGETS[name]
    mutator = Mutator(name, target.seeds, target.kind, gz=target.file.endswith(".gz"))
    outcomes = {attempt(target, tmp_path / target.file, mutator.make(1, i)) for i in range(100)}
    assert outcomes == {"accepted", "refused"}


@pytest.mark.parametrize("name", TARGETS)
def test_files_from_nothing_are_accepted_or_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / TARGETS[name].file
    outcomes: list[str] = []
    contents(name, TARGETS[name], 25, 1, lambda made: outcomes.append(_attempt(name, path, made)))
    assert len(outcomes) == 25


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_valid(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    for content in target.seeds:
        packed = gzip.compress(content) if target.file.endswith(".gz") else content
        assert attempt(target, tmp_path / target.file, packed) == "accepted", content


def test_locks_with_other_contents(tmp_path: Path) -> None:
    """The system's lock decides, whatever the file beside it says."""
    target = in_folder("lock", tmp_path)
    mutator = Mutator("lock", target.seeds, target.kind)
    made = [target.seeds[0], *(mutator.make(1, index) for index in range(50))]
    outcomes = {attempt(target, tmp_path / "input", content) for content in made}
    assert outcomes == {"accepted"}


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke(tmp_path: Path, path: Path) -> None:
    """The folder is called after the target."""
    _attempt(path.parent.name, tmp_path / TARGETS[path.parent.name].file, path.read_bytes())


def test_a_fault_is_noticed(tmp_path: Path) -> None:
    def check(path: Path) -> None:
        raise KeyError(path.read_text())

    with pytest.raises(KeyError, match="damaged"):
        attempt(Target("x", "bytes", [b"a"], check), tmp_path / "x", b"damaged")


def _attempt(name: str, path: Path, content: bytes) -> str:
    return attempt(TARGETS[name], path, content)
