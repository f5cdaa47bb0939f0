"""What authors run passes primitives that keep their contracts, and notices those that do not."""

from collections.abc import Iterator
from typing import Any

import pytest
from aang_plugin_s2orc.source import S2orc
from aang_plugin_surgery.pcgrad import PCGrad
from aang_plugin_task.unlabelled import Unlabelled
from aang_testing import check_data, check_weighter

from aang_core import Data, DataContext, Example, TextStream, Workbench
from tests.support.data import RepeatedTexts


class Pairs(PCGrad):
    """Rounds of two steps, each along a gradient that the weighter combines itself."""

    round_steps = 2

    def round(self, bench: Workbench) -> None:
        for _ in range(min(self.round_steps, bench.steps_left)):
            super().round(bench)


class Tireless(Pairs):
    """Takes two steps when the run has only one left."""

    def round(self, bench: Workbench) -> None:
        for _ in range(self.round_steps):
            PCGrad.round(self, bench)


def test_every_kind_of_step_is_a_step_of_the_round() -> None:
    check_weighter(Pairs)
    with pytest.raises(AssertionError, match="in a run of 3: expected 3, got 4"):
        check_weighter(Tireless)


class Endless(Data):
    """The training texts over and over."""

    buffer = 10
    made: Any = RepeatedTexts

    def examples(self, context: DataContext) -> Iterator[Example]:
        return iter(context.train)

    def stream(self, context: DataContext) -> TextStream:
        stream: TextStream = self.made(lambda number: self.examples(context))
        return stream


class EndsAfterOnePass(RepeatedTexts):
    def __next__(self) -> Example:
        if self.state_dict() == {"pass": 1, "given": 12}:
            raise StopIteration
        return super().__next__()


class HasSetAsState(RepeatedTexts):
    def state_dict(self) -> dict[str, Any]:
        return {"seen": set()}


class LoadsNothing(RepeatedTexts):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class ForgetsThePass(RepeatedTexts):
    """Every other pass is read backwards."""

    def __init__(self, read: Any) -> None:
        super().__init__(lambda number: list(read(number))[:: 1 - number % 2 * 2])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "pass": 1})


class Blank(RepeatedTexts):
    def __next__(self) -> Example:
        super().__next__()
        return Example(" ")


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (EndsAfterOnePass, "stream: expected texts without end, got the end after 12 texts"),
        (HasSetAsState, r"state_dict of the stream before text 0: expected JSON values, got {"),
        (LoadsNothing, "text 6 of a stream that loaded the state saved before text 6: expected Ex"),
        (ForgetsThePass, "text 14 of a stream that loaded the state saved before text 14"),
        (Blank, "text of text 0 of the stream: expected not blank"),
        (lambda read: read(1), "stream: expected an object with a method state_dict, got .*iter"),
    ],
)
def test_streams_never_end_and_resume_exactly(stream: Any, said: str) -> None:
    data = Endless()
    check_data(data, provides=("text",))
    data.made = stream
    with pytest.raises(AssertionError, match=said):
        check_data(data, provides=("text",))


@pytest.mark.parametrize(
    ("data", "reads"),
    [
        (S2orc(stream=True, buffer=2), "reads:domain"),
        (S2orc(stream=True, interleave=2), "reads:domain"),
        (Unlabelled(stream=True), "reads:unlabelled"),
    ],
)
def test_the_standard_streams_pass(data: Data, reads: str) -> None:
    check_data(data, provides=("text", reads))
