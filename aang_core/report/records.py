"""Run folders as reports read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aang_core.config import read_config_file
from aang_core.errors import DataError
from aang_core.runs.run_files import read_part, refuse_links


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
        refuse_links(folder)
        if not (folder / "config.yaml").is_file():
            raise DataError(f"{folder}: is no run folder, it holds no config.yaml")
        if result is None and not (folder / "result.json").is_file():
            raise DataError(f"{folder}: the run did not finish, result.json is missing")
        try:
            config = read_config_file(folder / "config.yaml")
            parts = {name: read_part(folder, f"{name}.json") for name in _PARTS}
            parts["result"] = read_part(folder, "result.json") if result is None else result
            metrics, weights = (
                read_part(folder, f"{name}.jsonl") for name in ("metrics", "weights")
            )
        except FileNotFoundError as error:
            raise DataError(
                f"{folder}: {Path(str(error.filename)).name} is missing; another version of AANG "
                f"wrote this run, and this is {version('aang-core')}. Train it again to report it"
            ) from error
        record = cls(folder, config, metrics=metrics, weights=weights, **parts)
        record._require_agreement()
        return record

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

    def _require_agreement(self) -> None:
        """Raise DataError where one file does not go with another, or a line with the others."""
        labels = self.evaluation["labels"]
        evaluated = [self.evaluation[part] for part in ("dev", "test") if part in self.evaluation]
        counted = [part["labels"].keys() for part in self.data["parts"].values()]
        agrees = {
            "metrics.jsonl": bool(self.metrics)
            and all(self.metric in line["dev"] for line in self.metrics),
            "weights.jsonl": all(_shape(line) == _shape(self.weights[0]) for line in self.weights),
            "evaluation.json": all(
                part["classes"].keys() == set(labels)
                and part["scores"].keys() == evaluated[0]["scores"].keys()
                and _is_square(part.get("confusion"), len(labels))
                for part in evaluated
            ),
            "data.json": all(keys == set(labels) for keys in counted),
        }
        for name, does in agrees.items():
            if not does:
                raise DataError(
                    f"{self.folder / name}: is damaged: what it names is not what the rest of the "
                    "run names"
                )


_PARTS = ("plugins", "data", "evaluation")


def _shape(line: Mapping[str, Any]) -> tuple[object, ...]:
    """What a line of ``weights.jsonl`` has values for."""
    factors = line.get("factors")
    return (
        line["weights"].keys(),
        None if factors is None else {stage: names.keys() for stage, names in factors.items()},
    )


def _is_square(counts: Sequence[Sequence[int]] | None, size: int) -> bool:
    return counts is None or [len(row) for row in counts] == [size] * size
