"""Run folders as reports read them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from aang_core.errors import DataError


@dataclass(frozen=True)
class RunRecord:
    """What a finished run left in its folder, besides model and checkpoint.

    metrics, weights: the lines of ``metrics.jsonl`` and ``weights.jsonl``. The rest is what
    ``config.yaml``, ``result.json``, ``plugins.json``, ``data.json`` and ``evaluation.json`` hold.
    """

    folder: Path
    config: Mapping[str, Any]
    result: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    weights: Sequence[Mapping[str, Any]]
    plugins: Mapping[str, Any]
    data: Mapping[str, Any]
    evaluation: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path, result: Mapping[str, Any] | None = None) -> "RunRecord":
        """Read a run folder.

        result: of a run that is about to finish, whose ``result.json`` is not written yet.

        Raises:
            DataError: it is no run folder, the run did not finish, another version wrote it, or a
                file in it is damaged.
        """
        if not (folder / "config.yaml").is_file():
            raise DataError(f"{folder}: is no run folder, it holds no config.yaml")
        if result is None and not (folder / "result.json").is_file():
            raise DataError(f"{folder}: the run did not finish, result.json is missing")
        try:
            config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
            parts = {name: _json(folder / f"{name}.json") for name in _PARTS}
            parts["result"] = _json(folder / "result.json") if result is None else result
            metrics, weights = (_lines(folder / f"{name}.jsonl") for name in ("metrics", "weights"))
        except FileNotFoundError as error:
            raise DataError(
                f"{folder}: {Path(str(error.filename)).name} is missing; another version of AANG "
                f"wrote this run, and this is {version('aang-core')}. Train it again to report it"
            ) from error
        except (ValueError, yaml.YAMLError) as error:
            raise DataError(f"{folder}: a file in it is damaged: {error}") from error
        return cls(folder, config, metrics=metrics, weights=weights, **parts)

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.absolute().name

    @property
    def metric(self) -> str:
        """The metric that the best model was chosen by."""
        return str(self.result["metric"]["name"])

    @property
    def objectives(self) -> list[str]:
        """Names of the objectives, in the order of the space."""
        return list(self.weights[-1]["weights"]) if self.weights else []

    def mean_weights(self, start: float, end: float) -> dict[str, float]:
        """Mean weight of each objective over a part of the training, from 0 to 1."""
        first = int(start * len(self.weights))
        rows = self.weights[first : max(first + 1, round(end * len(self.weights)))]
        return {
            name: sum(row["weights"][name] for row in rows) / len(rows) for name in self.objectives
        }


_PARTS = ("plugins", "data", "evaluation")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
