"""A run that gets as much as another one took: as many rows per step, or as many seconds.

The amount is read from the finished run of the other method with the same task and seed. It goes
into the configuration of the run, which can therefore be repeated and resumed like any other.
"""

from dataclasses import dataclass
from pathlib import Path

from aang_core import ConfigError
from aang_core.config import TrainConfig
from aang_core.runs import Result, read_part
from aang_plugin_compare.controls import What


@dataclass(frozen=True)
class Match:
    """What a run gets as much of as another one took.

    Attributes:
        what: compute or seconds.
        of: the run that took it, below the folder of the comparison.
        pace: for seconds, the run whose seconds per step turn them into steps.
    """

    what: What
    of: Path
    pace: Path | None = None

    @property
    def runs(self) -> list[Path]:
        """The runs that must finish first."""
        return [self.of, *([self.pace] if self.pace is not None else [])]


def matched(config: TrainConfig, match: Match, root: Path) -> TrainConfig:
    """The configuration with as much as the runs of ``match`` took.

    For compute, a step gets as many end-task rows as went through the body in a step of the other
    run, where the rows of objectives and of dev count too. For seconds, the run gets as many steps
    as fit into the seconds of the other run.

    Args:
        config: the configuration without that.
        match: which runs to look at.
        root: the folder of the comparison.

    Raises:
        ConfigError: one of the runs has not finished, or took no step.
        DataError: the result of one is damaged.
    """
    of = _took(root, match.of)
    if match.what == "compute":
        rows = max(1, round(of.body_rows / of.steps))
        return config.model_copy(update={"batch_size": rows})
    assert match.pace is not None
    pace = _took(root, match.pace)
    steps = of.train_seconds * pace.steps / max(pace.train_seconds, 1e-3)
    return config.model_copy(update={"steps": max(1, round(steps))})


def _took(root: Path, run: Path) -> Result:
    try:
        result = read_part(Result, root / run)
    except FileNotFoundError as error:
        name = run.relative_to("runs")
        raise ConfigError(f"gets as much as {name} takes, which has not finished") from error
    if not result.steps or not result.body_rows:
        raise ConfigError(
            f"{root / run}: does not say what its steps took; remove the run, so that it is "
            "trained again"
        )
    return result
