"""A finished run, read from its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang.config import TrainConfig, read_config_file, recorded_config
from aang.runs.files import finished_result, inside, read_lines, read_part
from aang.runs.schema import (
    DataStatistics,
    DevScores,
    Evaluation,
    PluginsUsed,
    Result,
    Round,
    Scores,
)
from aang.task_types.metrics import Metric, shown_score
from aang_core.errors import ConfigError, DataError, UnknownNameError
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.loading import plugin_differences
from aang_core.storage.durable import digest_of

if TYPE_CHECKING:
    from pandas import DataFrame, Index
    from transformers import PreTrainedModel

    from aang.runs.evaluate import AppliedScores
    from aang.runs.predict import Predictor


@dataclass(frozen=True)
class Records:
    """What a finished run recorded about its data, its training and its model.

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


def _missing(folder: Path, error: FileNotFoundError) -> DataError:
    """The error for a finished run that lacks a file."""
    return DataError(
        f"{folder}: {Path(str(error.filename)).name} is missing; another version of AANG wrote "
        f"this run, and this is {version('aang-core')}. Train it again"
    )


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run.

    The logs and the model are read when they are first used. They raise :class:`DataError` if they
    are damaged.

    Attributes:
        folder: the run folder.
        options: the content of ``config.yaml``.
        outcome: the content of ``result.json``.
        plugins: the content of ``plugins.json``.
        failures: which plug-ins failed after the training, a sentence each; empty for a run that
            was opened later.

    Examples:
        >>> from pathlib import Path
        >>> from aang import Run, train
        >>> lines = ["text,label"] + 10 * ["It rains again.,bad", "What a fine day!,good"]
        >>> characters = Path("mood.csv").write_text("\\n".join(lines))
        >>> trained = train(train="mood.csv", weighter="single-task", steps=2, out="mood")
        >>> run = Run.open("mood")
        >>> run.metric
        'macro-f1'
        >>> list(run.metrics.columns)
        ['macro-f1', 'micro-f1', 'accuracy', 'loss']
    """

    folder: Path
    options: Mapping[str, Any]
    outcome: Result
    plugins: PluginsUsed
    failures: Sequence[str] = field(default=(), compare=False)
    _notes: Sequence[str] | None = field(default=None, compare=False)
    _loaded: "list[Predictor]" = field(default_factory=list, compare=False)

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> "Run":
        """Open the folder of a finished run.

        Raises:
            DataError: ``folder`` is not a run folder, the run did not finish, another version wrote
                it, or a file in it is damaged.
        """
        place = Path(folder)
        return cls.about_to_finish(place, finished_result(place))

    @classmethod
    def about_to_finish(cls, folder: Path, outcome: Result) -> "Run":
        """Open a run folder whose ``result.json`` may not be written yet.

        Args:
            folder: the run folder.
            outcome: the content, present or future, of ``result.json``.

        Raises:
            DataError: a file is damaged, or missing because another version wrote the run.
        """
        options = read_config_file(folder / "config.yaml")
        try:
            plugins = read_part(PluginsUsed, folder)
        except FileNotFoundError as error:
            raise _missing(folder, error) from error
        return cls(folder, options, outcome, plugins)

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.folder.absolute().name

    @property
    def result(self) -> Mapping[str, Any]:
        """The content of ``result.json``, as plain values."""
        return self.outcome.document()

    @property
    def metric(self) -> Metric:
        """The metric that the best model was chosen by."""
        return self.outcome.metric.name

    @cached_property
    def config(self) -> TrainConfig:
        """The options, validated.

        Raises:
            AangError: this version does not have these options.
        """
        return recorded_config(self.folder / "config.yaml")

    @cached_property
    def records(self) -> Records:
        """What the run recorded about its data, its training and its model.

        Raises:
            DataError: another version wrote the run, or a file is damaged.
        """
        folder, logs = self.folder, self.outcome.logs
        try:
            records = Records(
                read_part(DataStatistics, folder),
                read_part(Evaluation, folder),
                read_lines(DevScores, folder),
                read_lines(Round, folder),
            )
        except FileNotFoundError as error:
            raise _missing(folder, error) from error
        for name in (DevScores.file, Round.file):
            if name in logs and digest_of(folder / name) != logs[name]:
                raise DataError(
                    f"{folder / name}: is damaged: it has changed since the run finished. Restore "
                    "it, or train the run again"
                )
        scored = [records.evaluation.dev.scores, *(line.dev for line in records.evaluations)]
        if any(self.metric not in scores for scores in scored):
            raise DataError(
                f"{self.folder / Result.file}: is damaged: nothing was scored by {self.metric!r}"
            )
        return records

    @property
    def notes(self) -> Sequence[str]:
        """What the user should know about the run, such as problems in its data."""
        return self.records.data.notes if self._notes is None else self._notes

    @property
    def weights(self) -> "DataFrame":
        """λ_e, as ``end-task``, and the weight of every objective: a row per round, by step."""
        from pandas import DataFrame

        rounds = self.records.rounds
        rows = [{"end-task": line.end_task_weight, **line.weights} for line in rounds]
        return DataFrame(rows, index=_by_step([line.step for line in rounds]))

    @property
    def metrics(self) -> "DataFrame":
        """Every score on dev, and the loss there: a row per evaluation, by step."""
        from pandas import DataFrame

        lines = self.records.evaluations
        return DataFrame([line.dev for line in lines], index=_by_step([li.step for li in lines]))

    def plot(self, what: str = "scores") -> Any:
        """Draw a chart of the run.

        This needs a plug-in that draws runs, such as aang-plugin-report.

        Args:
            what: ``scores``, ``weights``, ``factors-transform``, ``ranking``, ``cosines``
                and so on; the weighter decides which charts there are.

        Returns:
            A figure that notebooks can show.

        Raises:
            ConfigError: the run has no such chart, and the message lists its charts; or no plug-in
                draws runs, and the message says which one to install.
        """
        try:
            hook = load_plugins().registry.hooks.find("aang_plot_run")
        except UnknownNameError as error:
            raise ConfigError(f"charts are drawn by a plug-in, and {error}") from error
        return hook.call(run=self, what=what)

    @property
    def model_folder(self) -> Path:
        """The folder of the classifier.

        Raises:
            DataError: ``result.json`` names a folder outside the run folder.
        """
        return inside(self.folder, self.outcome.model)

    @property
    def model(self) -> "PreTrainedModel":
        """The classifier, an ordinary transformers model, in evaluation mode."""
        from aang.modeling import load_classifier

        return load_classifier(str(self.model_folder))

    def predict(
        self, data: object, *, batch_size: int = 32, trust_remote_code: bool = False
    ) -> "DataFrame":
        """Predict the labels of texts.

        Args:
            data: a text; a list or Series of texts, or of pairs of texts; a DataFrame, a Dataset, a
                list of records or a dict of columns, with the columns of the training data; or the
                path of a file.
            batch_size: texts per batch.
            trust_remote_code: run the Python code that comes with the model, if any.

        Returns:
            A row per text, with the index of ``data`` if it has one: ``predicted``, and
            ``P(class)``, the probability of each class.

        Raises:
            DataError: the data cannot be used; the message names the row.

        Examples:
            >>> from aang import train
            >>> data = (10 * ["It rains again.", "What a fine day!"], 10 * ["bad", "good"])
            >>> run = train(train=data, weighter="single-task", steps=2, quiet=True)
            >>> list(run.predict("It snows.").columns)
            ['predicted', 'P(bad)', 'P(good)']
        """
        from aang.runs.predict import predictions

        return predictions(self._predictor(trust_remote_code), data, batch_size=batch_size)

    def evaluate(
        self,
        data: object,
        *,
        batch_size: int = 64,
        skip_bad_rows: bool = False,
        trust_remote_code: bool = False,
    ) -> "AppliedScores":
        """Score the classifier on labelled data.

        Args:
            data: a pair ``(texts, labels)``; a DataFrame, a Dataset, a list of records or a dict of
                columns, with the columns of the training data; or the path of a file.
            batch_size: rows per batch.
            skip_bad_rows: leave out rows that lack a text or a label; without it they are an error.
            trust_remote_code: run the Python code that comes with the model, if any.

        Returns:
            The metrics as ``scores``, and the tables ``classes`` and ``confusion``. Rows of a class
            that the classifier does not know count as wrong, and ``notes`` say how many there are.

        Raises:
            DataError: the data cannot be used, or has no class that the classifier knows.

        Examples:
            >>> from aang import train
            >>> data = (10 * ["It rains again.", "What a fine day!"], 10 * ["bad", "good"])
            >>> run = train(train=data, weighter="single-task", steps=2, quiet=True)
            >>> list(run.evaluate((["It snows."], ["bad"])).classes.columns)
            ['precision', 'recall', 'f1', 'examples']
        """
        from aang.runs.evaluate import applied_scores

        return applied_scores(
            self._predictor(trust_remote_code),
            data,
            batch_size=batch_size,
            skip_bad_rows=skip_bad_rows,
        )

    def _predictor(self, trust_remote_code: bool) -> "Predictor":
        """The classifier, loaded once."""
        from aang.runs.devices import choose_device
        from aang.runs.predict import Predictor

        if not self._loaded:
            device = choose_device("auto")
            self._loaded.append(
                Predictor.load(self.folder, device, trust_remote_code=trust_remote_code)
            )
        return self._loaded[0]

    def __repr__(self) -> str:
        result, chosen = self.outcome, self.outcome.metric
        how = self.options.get("recipe") or result.weighter
        kept, dev = f"the best model from step {result.best_step}", "dev"
        if result.trained_on_dev:
            kept, dev = "the last model", "dev (trained on)"
        count = f"{result.objectives} objective{'' if result.objectives == 1 else 's'}"
        return (
            f"Run {self.folder}: {how}, seed {result.seed}, {result.steps} steps in "
            f"{result.train_seconds:.1f} s, {kept}\n"
            f"{chosen.name}: {dev} {chosen.shown('dev')}, test {chosen.shown('test')}; "
            f"{result.baseline}: dev {shown_score(result.majority.dev, chosen.name)}, "
            f"test {shown_score(result.majority.test, chosen.name)}\n"
            f"{count}; model in {self.folder / result.model}"
        )

    def differences(self, installed: Plugins) -> list[str]:
        """How the plug-ins that the run used differ from those installed, a sentence each."""
        return plugin_differences(self.plugins.document(), installed)


def table_of_scores(run: Run) -> list[list[str]]:
    """The scores of a run and of what it is compared with, for people: a header, then the rows."""
    outcome, chosen = run.outcome, run.outcome.metric
    metric = f"{chosen.name}, 95% interval" if chosen.intervals else chosen.name
    dev = "dev (trained on)" if outcome.trained_on_dev else "dev"
    this = f"this run ({run.options.get('recipe') or outcome.weighter})"
    rows = [[metric, dev, "test"], [this, chosen.shown("dev"), chosen.shown("test")]]
    others: dict[str, Scores] = {outcome.baseline: outcome.majority}
    if reference := outcome.fine_tuning:
        others = {f"plain fine-tuning, mean of {reference.seeds} seeds": reference, **others}
    for name, scores in others.items():
        rows.append([name, *(shown_score(scores.on(p), chosen.name) for p in ("dev", "test"))])
    return rows


def _by_step(steps: Sequence[int]) -> "Index[int]":
    from pandas import Index

    return Index(steps, name="step")
