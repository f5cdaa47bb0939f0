"""Scalars for TensorBoard, Weights & Biases and every other tracker that accelerate supports."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from aang_core import ConfigError
from aang_core.storage import writing


def check_trackers(names: Sequence[str]) -> None:
    """Refuse a tracker that is not available.

    Raises:
        ConfigError: the tracker is unknown or not installed.
    """
    known = {str(getattr(name, "value", name)) for name in LOGGER_TYPE_TO_CLASS}
    installed = {str(getattr(name, "value", name)) for name in get_available_trackers()}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"--log {name}: there is no such tracker; there are {', '.join(sorted(known))}"
            )
        if name not in installed:
            raise ConfigError(f"--log {name}: is not installed; pip install {name}")


class Tracker:
    """An observer that passes weights, losses and scores on to accelerate's trackers.

    Args:
        names: the names of the trackers.
        folder: the run folder; trackers that write files do so in ``trackers`` below it.
        options: the run's options by name.

    Raises:
        StorageError: a tracker cannot write its files; the methods raise it too.
    """

    def __init__(self, names: Sequence[str], folder: Path, options: Mapping[str, Any]) -> None:
        self._place = folder / "trackers"
        with writing(self._place):
            self._accelerator = Accelerator(cpu=True, log_with=list(names), project_dir=self._place)
            config = {name: _plain(of) for name, of in options.items() if name != "out"}
            self._accelerator.init_trackers(folder.name, config=config)

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        scalars = {"weight/end-task": record["end_task_weight"]}
        scalars |= {f"weight/{name}": value for name, value in record["weights"].items()}
        for kind, one in (("losses", "loss"), ("cosines", "cosine")):
            scalars |= {f"{one}/{name}": value for name, value in record.get(kind, {}).items()}
        with writing(self._place):
            self._accelerator.log(scalars, step=step)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        scalars = {f"dev/{name}": score for name, score in dev.items()}
        with writing(self._place):
            self._accelerator.log(scalars, step=step)

    def close(self) -> None:
        """Write everything that is still buffered."""
        # Not end_training, which also destroys the process group, which is still in use.
        with writing(self._place):
            for tracker in self._accelerator.trackers:
                tracker.finish()


def _plain(value: Any) -> Any:
    """Convert an option for TensorBoard, which accepts only numbers, strings and booleans."""
    return value if isinstance(value, bool | int | float | str) else str(value)
