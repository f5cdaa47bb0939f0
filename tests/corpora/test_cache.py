"""Where caches lie, and that files there are whole or absent."""

import pwd
from pathlib import Path

import pytest
from aang import atomic_write, cache_folder, find_files
from platformdirs.api import PlatformDirsABC
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from aang_core import ConfigError, DataError, ReadReport
from tests.support.data import cached_text, chosen_cache_folder, make_folder


def test_aang_cache_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AANG_CACHE", str(tmp_path / "mine"))
    assert chosen_cache_folder() == tmp_path / "mine"
    monkeypatch.setenv("AANG_CACHE", "~/mine")
    assert chosen_cache_folder() == Path.home() / "mine"


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        (Unix, "XDG_CACHE_HOME", "/somewhere/aang"),
        (Unix, None, "HOME/.cache/aang"),
        (MacOS, None, "HOME/Library/Caches/aang"),
    ],
)
def test_else_the_platform_does(
    monkeypatch: pytest.MonkeyPatch,
    platform: type[PlatformDirsABC],
    variable: str | None,
    expected: str,
) -> None:
    for name in ("AANG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", platform)
    if variable is not None:
        monkeypatch.setenv(variable, "/somewhere")
    assert chosen_cache_folder() == Path(expected.replace("HOME", str(Path.home())))


def test_a_written_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    with atomic_write(path) as draft:
        draft.write_text("half", encoding="utf-8")
        assert not path.exists()
        draft.write_text("whole", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")

    def fail() -> None:
        with atomic_write(path) as draft:
            draft.write_text("new", encoding="utf-8")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="AANG_CACHE"):
        make_folder(tmp_path / "taken" / "aang")


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    monkeypatch.setenv("AANG_CACHE", str(tmp_path / "taken"))
    with pytest.raises(ConfigError, match="AANG cannot write its cache there"):
        cache_folder()


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked of the system and not provoked: for root, which tests may run as, no folder is.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(ConfigError, match=r"read-only.*AANG_CACHE"):
        make_folder(tmp_path)


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder called ~ is made in the current one."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "AANG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ConfigError, match=r"no home folder .* set AANG_CACHE"):
        chosen_cache_folder()
    monkeypatch.setenv("AANG_CACHE", "~no-such-user/cache")
    with pytest.raises(ConfigError, match="AANG_CACHE=~no-such-user/cache: there is no such home"):
        chosen_cache_folder()
    with pytest.raises(DataError, match="--domain ~no-such-user: there is no such home folder"):
        find_files([Path("~no-such-user")], (".txt",), "--domain", ReadReport())


def test_cached_text_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream over it goes on in a run's own copy, which has that name, too."""
    monkeypatch.setenv("AANG_CACHE", str(tmp_path))
    first, other = (cached_text("kept/texts.jsonl", text) for text in ("one\n", "other\n"))
    assert first.name == other.name == "texts.jsonl"
    assert (first.read_text(), other.read_text()) == ("one\n", "other\n")
    assert cached_text("kept/texts.jsonl", "one\n") == first
