"""Weighters that break a promise: what `aang train` says, and that it says so before it writes."""

from pathlib import Path

import pytest

from tests.training.conftest import Aang

PLUGIN = """
from aang_core import StepwiseWeighter, hookimpl


class Broken(StepwiseWeighter):
    def __init__(self, end_task, auxiliaries):
        self.names = [end_task.name, *(card.name for card in auxiliaries)]

    def coefficients(self, sampled):
        names = [self.names[0], *sampled]
        return dict.fromkeys(names, 1 / len(names))

    def weights(self):
        return self.coefficients(self.names[1:])

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

EXTRA

@hookimpl
def aang_register_weighters(register):
    register("broken", "breaks a promise", Broken)
"""

BEFORE = {
    "deaf": (
        "    signals = frozenset({'loss'})",
        "observe: expected a method that learns from loss",
    ),
    "unserialisable": (
        "    def state_dict(self):\n        return {'names': set(self.names)}",
        "state_dict: expected JSON values by name",
    ),
    "unknown signal": ("    signals = frozenset({'angle'})", "signals: expected some of cosine"),
}
IN_TRAINING = {
    "idle": ("    def round(self, bench):\n        pass", "a round: expected at least one step"),
    "four times one": (
        "    def coefficients(self, sampled):\n"
        "        return dict.fromkeys([self.names[0], *sampled], 1.0)\n"
        "    def weights(self):\n"
        "        return dict.fromkeys(self.names, 1 / len(self.names))",
        "the sum of the coefficients of a step: expected 1, got 4",
    ),
}


def trained(aang: Aang, options: list[object], folder: Path, extra: str) -> tuple[int, str]:
    plugin = folder / "aang_plugin_broken.py"
    plugin.write_text(PLUGIN.replace("EXTRA", extra), encoding="utf-8")
    done = aang(
        *("--plugin", plugin, "train", *options, "--space", "x+y+z"),
        *("--weighter", "broken", "--quiet", "--out", folder / "run"),
    )
    return done.status, " ".join(done.err.split())


@pytest.mark.parametrize("case", BEFORE)
def test_it_is_found_before_the_run_folder_exists(
    aang: Aang, train_options: list[object], tmp_path: Path, case: str
) -> None:
    extra, message = BEFORE[case]
    status, err = trained(aang, train_options, tmp_path, extra)
    assert status == 2, err
    assert message in err
    assert "broken" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("case", IN_TRAINING)
def test_it_ends_the_training_and_names_the_weighter(
    aang: Aang, train_options: list[object], tmp_path: Path, case: str
) -> None:
    extra, message = IN_TRAINING[case]
    status, err = trained(aang, train_options, tmp_path, extra)
    assert status == 2, err
    assert message in err
    assert "broken" in err
    log = tmp_path / "run" / "weights.jsonl"
    assert not log.exists() or not log.read_text(encoding="utf-8")
