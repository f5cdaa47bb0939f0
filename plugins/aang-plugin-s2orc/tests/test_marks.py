"""What is remembered of papers."""

from aang_plugin_s2orc.marks import ABSTRACT, CHOSEN, FULL_TEXT, TITLE, Marks
from hypothesis import given
from hypothesis import strategies as st

MARKS = st.sampled_from([CHOSEN, FULL_TEXT, ABSTRACT, TITLE])


@given(st.lists(st.tuples(st.text(max_size=2) | st.integers().map(str), MARKS), max_size=400))
def test_marks_are_those_that_were_put_there(added: list[tuple[str, int]]) -> None:
    marks, expected = Marks(), dict[str, int]()
    for key, mark in added:
        assert marks.of(key) == expected.get(key, 0)
        assert marks.add(key, mark) is not bool(expected.get(key, 0) & mark)
        expected[key] = expected.get(key, 0) | mark
    assert len(marks) == len(expected)
    assert all(marks.of(key) == sum_ for key, sum_ in expected.items())


def test_many_papers_take_some_bytes_each() -> None:
    marks = Marks()
    keys = [str(number) for number in range(1_000_000, 1_150_000)]
    assert all(marks.add(key, CHOSEN) for key in keys)
    assert not any(marks.add(key, CHOSEN) for key in keys)
    assert not any(marks.of(f"{key}x") for key in keys)
    assert len(marks) == len(keys)
    assert marks.nbytes < 22 * len(keys)
