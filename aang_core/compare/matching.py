"""A run that is given as much as another one took: as many rows a step, or seconds.

How much that is is read from the finished run of the other method with the same task and seed. The
number goes into the configuration of the run, which can be repeated and resumed like any other.
"""

from dataclasses import dataclass
from pathlib import Path

from aang_core.compare.controls import What
from aang_core.config import TrainConfig
from aang_core.errors import ConfigError
from aang_core.runs.run_files import read_part
from aang_core.runs.schema import Result


@dataclass(frozen=True)
class Match:
    """What a run is given as much of, below the folder of the comparison.

    of: the run that takes it. pace: for seconds, the run by whose seconds a step they become steps.
    """

    what: What
    of: Path
    pace: Path | None = None

    @property
    def runs(self) -> list[Path]:
        """The runs that must have finished first."""
        return [self.of, *([self.pace] if self.pace is not None else [])]


def matched(config: TrainConfig, match: Match, root: Path) -> TrainConfig:
    """The configuration with what the runs of ``match`` below ``root`` took.

    For compute: as many end-task rows a step as went through the body in a step there, those of
    objectives and of dev included. For seconds: as many steps as the seconds there allow.

    Raises:
        ConfigError: one of them has not finished, or took no step.
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
        raise ConfigError(f"is given as much as {name} takes, which has not finished") from error
    if not result.steps or not result.body_rows:
        raise ConfigError(
            f"{root / run}: does not say what its steps took; remove the run, so that it is "
            "trained again"
        )
    return result
