"""The contract of streams of texts: they never end, and resume exactly."""

import json
from typing import Any

from aang_core.contracts import expect
from aang_core.errors import DataError
from aang_core.objectives.stages import Data, DataContext, Example, TextStream
from aang_testing.expectation import expect_json, only_generator_draws

MOST = 200
"""The most texts to read in a pass: a plug-in's own corpus may have any size."""


def read_stream(data: Data, context: DataContext, texts: int) -> list[Example]:
    """Read more than two passes of a stream, and resume it at several places.

    Args:
        data: the primitive, whose ``buffer`` is not None.
        context: what it may read.
        texts: number of texts in a pass.

    Returns:
        What the stream yielded.

    Raises:
        AssertionError: it ended, or continued differently from a saved state.
    """
    whole = isinstance(data.buffer, int) and not isinstance(data.buffer, bool) and data.buffer > 0
    expect(whole, "buffer", "a whole number, 1 or more, or None", data.buffer)
    ahead = min(texts, MOST) + 1
    # At the beginning, within the first pass, and within the second.
    places = (0, ahead // 2, ahead + 1)
    states: dict[int, str] = {}
    read: list[Any] = []
    with only_generator_draws("stream"):
        stream = _opened(data, context)
        for number in range(places[-1] + ahead):
            if number in places:
                what = f"state_dict of the stream before text {number}"
                states[number] = expect_json(stream.state_dict(), what)
            read.append(_next(stream, number))
        for place, state in states.items():
            resumed = _opened(data, context)
            resumed.load_state_dict(json.loads(state))
            for number in range(place, place + ahead):
                what = f"text {number} of a stream that loaded the state saved before text {place}"
                found = _next(resumed, number)
                expect(found == read[number], what, read[number], found)
    return read


def _opened(data: Data, context: DataContext) -> TextStream:
    stream: Any = data.stream(context)
    for method in ("__next__", "state_dict", "load_state_dict"):
        found = f"{type(stream).__name__}, which has none"
        expect(hasattr(stream, method), "stream", f"an object with a method {method}", found)
    opened: TextStream = stream
    return opened


def _next(stream: TextStream, place: int) -> Any:
    try:
        return next(stream)
    except StopIteration:
        expect(False, "stream", "texts without end", f"the end after {place} texts")
    except DataError as error:
        expect(False, f"text {place} of the stream", "an Example", f"the error: {error}")
