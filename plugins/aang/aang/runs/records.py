"""What a finished run recorded about its data, its training and its model, read together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from aang.runs.log_lines import DevScores, Round
from aang.runs.run_files import read_lines, read_part
from aang.runs.schema import DataStatistics, Evaluation
from aang_core.errors import DataError
from aang_core.storage.log_digests import check_finished_logs
from aang_core.tasks.names import END_TASK
from aang_core.training.evaluation import Metric


@dataclass(frozen=True)
class Records:
    """The records of a finished run, checked to agree with one another.

    Attributes:
        data: statistics of the data.
        evaluation: scores and errors of the chosen model.
        evaluations: every evaluation on dev, in order.
        rounds: every round of training, in order.
    """

    data: DataStatistics
    evaluation: Evaluation
    evaluations: Sequence[DevScores]
    rounds: Sequence[Round]

    @classmethod
    def read(cls, folder: Path, metric: Metric, logs: Mapping[str, str]) -> "Records":
        """Read the records of a run.

        Args:
            folder: the run folder.
            metric: the metric that the best model was chosen by.
            logs: the SHA-256 of its logs, as ``result.json`` has them.

        Raises:
            DataError: another version wrote the run, or a file is damaged or does not agree with
                the others.
        """
        try:
            records = cls(
                read_part(DataStatistics, folder),
                read_part(Evaluation, folder),
                read_lines(DevScores, folder),
                read_lines(Round, folder),
            )
        except FileNotFoundError as error:
            raise missing(folder, error) from error
        records._require_agreement(folder, metric)
        check_finished_logs(folder, {n: logs[n] for n in (DevScores.file, Round.file) if n in logs})
        return records

    @property
    def objectives(self) -> list[str]:
        """Names of the objectives, in the order of the space."""
        return list(self.rounds[-1].weights) if self.rounds else []

    def mean_weights(self, start: float, end: float) -> dict[str, float]:
        """Mean weight of each objective over a part of the training.

        Args:
            start: where the part starts, from 0 to 1.
            end: where it ends, from 0 to 1.
        """
        first = int(start * len(self.rounds))
        rounds = self.rounds[first : max(first + 1, round(end * len(self.rounds)))]
        return {
            name: sum(line.weights[name] for line in rounds) / len(rounds)
            for name in self.objectives
        }

    def _require_agreement(self, folder: Path, metric: Metric) -> None:
        """Raise DataError if a file does not agree with another, or a line with the others."""
        labels = self.evaluation.labels
        parts = self.evaluation.parts.values()
        agrees = {
            "metrics.jsonl": bool(self.evaluations)
            and all(
                metric in line.dev and line.losses.keys() <= {END_TASK, *self.objectives}
                for line in self.evaluations
            ),
            "weights.jsonl": all(_shape(line) == _shape(self.rounds[0]) for line in self.rounds),
            "evaluation.json": all(
                part.classes.keys() == set(labels)
                and part.scores.keys() == self.evaluation.dev.scores.keys()
                and _is_square(part.confusion, len(labels))
                for part in parts
            ),
            "data.json": all(
                part.labels.keys() == set(labels) for part in self.data.parts.values()
            ),
        }
        for name, does in agrees.items():
            if not does:
                raise DataError(
                    f"{folder / name}: is damaged: what it names is not what the rest of the run "
                    "names"
                )


def missing(folder: Path, error: FileNotFoundError) -> DataError:
    """The error for a finished run that lacks a file."""
    return DataError(
        f"{folder}: {Path(str(error.filename)).name} is missing; another version of AANG wrote "
        f"this run, and this is {version('aang-core')}. Train it again"
    )


def _shape(line: Round) -> tuple[object, ...]:
    """The names that a line of ``weights.jsonl`` has values for."""
    return (
        line.weights.keys(),
        {stage: values.keys() for stage, values in line.factors.items()},
    )


def _is_square(counts: Sequence[Sequence[int]], size: int) -> bool:
    """Whether ``counts`` is empty or a confusion matrix of ``size`` classes."""
    return not counts or [len(row) for row in counts] == [size] * size
