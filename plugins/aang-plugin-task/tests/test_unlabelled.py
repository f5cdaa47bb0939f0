"""The data ``unlabelled``, and the space ``td+u``."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from aang_plugin_task.unlabelled import Unlabelled
from aang_testing import check_data

from aang_core import ConfigError, DataContext, DataError, Example, ReadReport, load_plugins
from aang_core import load_space as load

SOME = (Example("one"), Example("three"), Example("a", "pair"), Example("four and five"))


def read(
    *, unlabelled: Iterable[Example] | None = SOME, report: ReadReport | None = None, **options: Any
) -> list[Example]:
    context = DataContext((), unlabelled=unlabelled, report=report or ReadReport())
    return list(Unlabelled(**options).examples(context))


def test_it_keeps_the_contract() -> None:
    check_data(Unlabelled(), ("text", "reads:unlabelled"))


def test_limits() -> None:
    report = ReadReport()
    assert read(report=report) == list(SOME)
    assert report.lines() == []
    assert read(limit=2) == list(SOME[:2])
    assert read(min_length=4, max_length=5, report=report) == list(SOME[1:3])
    assert report.lines() == [
        "1 × unlabelled text under 4 characters, skipped (first: one)",
        "1 × unlabelled text over 5 characters, skipped (first: four and five)",
    ]


def test_a_stream_goes_on_for_ever_and_from_anywhere() -> None:
    report = ReadReport()
    context = DataContext((), unlabelled=SOME, report=report)
    data = Unlabelled(stream=True, buffer=3, min_length=4)
    assert data.buffer == 3
    stream = data.stream(context)
    first = [next(stream) for _ in range(5)]
    assert first == [*SOME[1:], *SOME[1:3]]
    state = stream.state_dict()
    onward = [next(stream) for _ in range(4)]
    again = data.stream(context)
    again.load_state_dict(state)
    assert [next(again) for _ in range(4)] == onward
    assert report.counts == {"unlabelled text under 4 characters, skipped": 1}


def test_a_stream_is_read_as_it_is_needed() -> None:
    class Endless:
        def __iter__(self) -> Any:
            return (Example(f"text {i}") for i in iter(int, 1))

    stream = Unlabelled(stream=True).stream(DataContext((), unlabelled=Endless()))
    assert [example.text for example in islice(iter(stream.__next__, None), 2)] == ["text 0"] * 2


def test_none_named() -> None:
    for use in (Unlabelled().examples, Unlabelled(stream=True).stream):
        with pytest.raises(DataError, match=r"none was named\. .*--unlabelled rest; .*--space td"):
            use(DataContext(()))


def test_nothing_of_the_length_asked_for() -> None:
    with pytest.raises(DataError, match="no usable text: 4 × unlabelled text under 99"):
        read(min_length=99)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limit": 0}, "unlabelled.limit is 0; give a whole number, 1 or more"),
        ({"min_length": -1}, "unlabelled.min_length is -1"),
        ({"max_length": 3, "min_length": 4}, "unlabelled.max_length is 3; .* 4 or more"),
        ({"buffer": True}, "unlabelled.buffer is True"),
        ({"stream": "yes"}, "unlabelled.stream is 'yes'; give true or false"),
        ({"stream": True, "limit": 5}, "there is no end"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Unlabelled(**options)


def test_the_space() -> None:
    """All of td; over unlabelled text whatever needs no label; consistency over both."""
    registry = load_plugins(environ={}).registry
    td = {o.name for o in load("td", registry).objectives}
    found = {o.name for o in load("td+u", registry).objectives}
    assert td < found
    over_both = {name for name in found if name.endswith("/consistency")}
    assert {name.split("/")[2] for name in over_both} == {"bidirectional", "random-factorized"}
    denoising = {n.replace("task/", "unlabelled/") for n in td if n.endswith("/denoise")}
    assert found - td - over_both == denoising
    assert len(over_both) == 2 * 4 * 2
