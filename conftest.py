"""What holds for all tests: one thread for each process, no network, and how long they take."""

import os
from pathlib import Path

import pytest

# Small models are fastest on one thread. With more, processes that run side by side take the cores
# from each other, since OpenMP's threads spin while they wait. Set before anything imports torch.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

DURATIONS = Path(__file__).parent / "tests" / "durations.tsv"
WORTH_RECORDING = 0.1
"""Seconds: ``durations.tsv`` leaves out faster tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-durations",
        action="store_true",
        help="write what each test took to tests/durations.tsv, in place of the tests of its tier",
    )


def pytest_configure(config: pytest.Config) -> None:
    # With xdist, the reports of all processes reach the one that has no "workerinput".
    if config.getoption("record_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


class Durations:
    """Records the slowest case of each test function, and writes them when all tests are over."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], float] = {}
        self._tiers: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            test = _tier(report), report.nodeid.split("[")[0]
            self._tiers.add(test[0])
            self._seconds[test] = max(report.duration, self._seconds.get(test, 0.0))

    def pytest_sessionfinish(self) -> None:
        others = [line for line in _recorded() if line.split("\t")[0] not in self._tiers]
        ours = [
            f"{tier}\t{seconds:.1f}\t{test}"
            for (tier, test), seconds in self._seconds.items()
            if seconds >= WORTH_RECORDING
        ]
        DURATIONS.write_text("".join(f"{line}\n" for line in sorted([*others, *ours])))


def _tier(report: pytest.TestReport) -> str:
    return next((tier for tier in ("full", "release") if tier in report.keywords), "default")


def _recorded() -> list[str]:
    return DURATIONS.read_text().splitlines() if DURATIONS.exists() else []
