import fcntl
import os
import pty
import struct
import sys
import termios

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.commands import print_table

words = st.text(alphabet="abc-[]:中é", min_size=1, max_size=12)
cells = st.lists(words, max_size=8).map(" ".join)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(cells, cells, cells), max_size=4), width=st.integers(1, 90))
def test_no_word_is_lost_or_broken_at_any_width(
    rows: list[tuple[str, str, str]],
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(["one", "two", "three"], rows)
    shown = capsys.readouterr().out
    expected = sorted(word for row in rows for cell in row for word in cell.split())
    titles = {"one", "two", "three", "one:", "two:", "three:"}
    assert sorted(word for word in shown.split() if word not in titles) == expected


def test_a_table_keeps_to_the_width_where_it_can(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_table(["name", "summary"], [["mask", "word " * 40]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "summary"]
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60


def test_records_leave_out_what_is_empty(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    print_table(["kind", "name", "text", "more"], [["a", "b", "some long text", ""]], lead=2)
    assert capsys.readouterr().out == "a b\n  text: some long text\n"


def test_a_terminal_gets_its_own_width() -> None:
    """In a process whose standard output is a terminal of 50 columns."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        os.execve(sys.executable, [sys.executable, "-m", "aang_core", "plugins"], environ)
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"aang-plugin-bert" in shown
