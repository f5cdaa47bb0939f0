"""Runs that get the same compute or the same seconds as another run.

The amount is read from the finished run of the other method with the same task and seed, and put
into the configuration of the run, which can therefore be repeated and resumed like any other.
"""

from dataclasses import dataclass
from pathlib import Path

from aang.config import TrainConfig
from aang.runs import Result, read_part

from aang_core import ConfigError
from aang_plugin_compare.controls import What


@dataclass(frozen=True)
class Match:
    """Which run another run gets the same compute or seconds as.

    Attributes:
        what: compute or seconds.
        of: the other run, relative to the folder of the comparison.
        pace: for seconds, the run whose seconds per step convert them to steps.
    """

    what: What
    of: Path
    pace: Path | None = None

    @property
    def runs(self) -> list[Path]:
        """The runs that must finish first."""
        return [self.of, *([self.pace] if self.pace is not None else [])]


def matched(config: TrainConfig, match: Match, root: Path) -> TrainConfig:
    """The configuration with the compute or seconds that ``match`` asks for.

    For compute, a step gets as many end-task rows as went through the body in a step of the other
    run, including rows of objectives and of dev, and a share of those of pre-training and of a
    final fine-tuning. For seconds, the run gets as many steps as fit into the seconds of the other
    run.

    Args:
        config: the configuration to change.
        match: the runs to read the amount from.
        root: the folder of the comparison.

    Raises:
        ConfigError: one of the runs has not finished or has no steps.
        DataError: the result of one of the runs is damaged.
    """
    of = _took(root, match.of)
    if match.what == "compute":
        rows = max(1, round(of.all_body_rows / of.steps))
        return config.model_copy(update={"batch_size": rows})
    assert match.pace is not None
    pace = _took(root, match.pace)
    steps = of.all_seconds * pace.steps / max(pace.train_seconds, 1e-3)
    return config.model_copy(update={"steps": max(1, round(steps))})


def _took(root: Path, run: Path) -> Result:
    try:
        result = read_part(Result, root / run)
    except FileNotFoundError as error:
        name = run.relative_to("runs")
        raise ConfigError(f"gets as much as {name} takes, which has not finished") from error
    if not result.steps:
        raise ConfigError(f"{root / run}: trained for no steps, so nothing can get as much")
    return result
