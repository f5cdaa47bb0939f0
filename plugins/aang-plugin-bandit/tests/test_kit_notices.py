"""The checks of weighters find rounds and draws that are not what they should be."""

from collections.abc import Mapping
from typing import Any

import pytest
from aang_plugin_bandit.autosem import AutoSem
from aang_testing import check_weighter

from aang_core import TaskCard, Workbench


class Longer(AutoSem):
    """Takes a step more than a round has."""

    def round(self, bench: Workbench) -> None:
        super().round(bench)
        bench.step({bench.end_task: 1.0}, frozenset())


class Unweighted(AutoSem):
    """Draws with an invalid weight."""

    def __init__(self, end_task: TaskCard, auxiliaries: Any, weight: float = -1.0) -> None:
        super().__init__(end_task, auxiliaries, k=1)
        self._drawn: Mapping[str, float] = {card.name: weight for card in auxiliaries}

    def round(self, bench: Workbench) -> None:
        bench.sample(0, self._drawn)
        super().round(bench)


def test_a_round_of_another_length() -> None:
    with pytest.raises(AssertionError, match="steps after a round of 10"):
        check_weighter(Longer)


def test_a_draw_by_what_is_no_weight() -> None:
    with pytest.raises(AssertionError, match="weights of a draw"):
        check_weighter(Unweighted)


def test_a_draw_by_the_weights_of_others() -> None:
    class Others(Unweighted):
        def __init__(self, end_task: TaskCard, auxiliaries: Any) -> None:
            super().__init__(end_task, auxiliaries, weight=1.0)
            self._drawn = {**self._drawn, end_task.name: 1.0}

    with pytest.raises(AssertionError, match="tasks of a draw"):
        check_weighter(Others)
