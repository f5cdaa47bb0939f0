"""Environment variables that launchers set."""

import pytest
import torch

from aang_core import AangError
from tests.support.training import ALONE, local_rank, processes_of_environment


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "")
    monkeypatch.setenv("LOCAL_RANK", "")
    assert processes_of_environment(torch.device("cpu")) is ALONE
    assert local_rank() == 0


@pytest.mark.parametrize("value", ["two", "-1", "1.5", "9" * 5000])
def test_one_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", value)
    with pytest.raises(AangError, match=r"^WORLD_SIZE=.* is not a whole number"):
        processes_of_environment(torch.device("cpu"))
