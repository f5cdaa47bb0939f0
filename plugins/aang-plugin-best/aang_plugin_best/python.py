"""``best`` and ``AangBest``: the search from Python."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from aang.from_python.given_data import GivenData
from aang.runs import choose_device, interruptible
from aang.runs.predict import WINDOW
from aang_plugin_compare.launcher import chosen_launcher
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Runs
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from aang_core import DataError, ReadReport, load_plugins
from aang_core.cli import echo, note
from aang_core.storage import write_file, writing
from aang_plugin_best.arrays import (
    class_names,
    groups_of,
    labelled_columns,
    labels_of,
    text_columns,
    texts_of,
    texts_to_predict,
    weights_by_name,
)
from aang_plugin_best.deploy import BEST, Together, open_classifier
from aang_plugin_best.estimator import TextEstimator, bad_input
from aang_plugin_best.search import Asked, Search, find_best
from aang_plugin_best.verdict import words

_OF_RAY = ("address", "cpus_per_run", "gpus_per_run")


def best(
    *,
    out: str | PathLike[str] = "best",
    minutes: float | None = None,
    group: str | None = None,
    keep_dev: bool = False,
    candidates: Sequence[str] = (),
    deploy: Literal["one", "ensemble"] = "one",
    answer_at: float | None = None,
    search_objectives: str | None = None,
    jobs: int = 1,
    quiet: bool = False,
    **options: Any,
) -> "AangBest":
    """Search as ``aang best`` does, from Python; the same call goes on after an interrupt.

    Args:
        out: The folder of the search.
        minutes: How long it may take, training on all rows included; 60 by default.
        group: The column whose equal values stay in one fold.
        keep_dev: Keep ``dev`` out, and score it at the end.
        candidates: The candidates to try; all by default.
        deploy: ``"one"`` trains the best model on all rows, ``"ensemble"`` several.
        answer_at: The accuracy that answers should have; predictions that are not sure enough for
            it are empty.
        search_objectives: A space, such as ``"td+c"``, whose objectives are searched for a set that
            becomes a candidate.
        jobs: How many trainings run at once.
        quiet: Show nothing.
        **options: Those of ``aang train`` that name data and encoder, such as ``train``, ``test``,
            ``unlabelled`` and ``model``, and others that all candidates share. Data may be in
            memory, as for ``aang.train``.

    Returns:
        The classifier; its ``verdict_`` is the content of ``best.json``.

    Raises:
        AangError: The data or an option cannot be used.
    """
    root, registry, report = Path(out), load_plugins().registry, ReadReport()
    given = GivenData.of(options)
    asked = Asked(
        _written(given, root, group),
        minutes,
        group,
        keep_dev,
        tuple(candidates),
        deploy,
        answer_at,
        search_objectives,
    )
    trust = ["--trust-remote-code"] if options.get("trust_remote_code") else []

    def tell(line: str) -> None:
        if not quiet:
            echo(line, err=True)

    search = Search.prepared(asked, registry, report)
    for line in () if quiet else report.lines():
        note(line)
    local = {"engine": "local", "jobs": jobs, **dict.fromkeys(_OF_RAY)}
    with interruptible(), chosen_launcher(root, local) as launcher:
        runs = Runs(root, launcher, registry, after=trust)
        verdict = find_best(search, runs, registry, tell)
    for line in words(verdict):
        tell(line)
    return AangBest.load(root)


def _written(given: GivenData, root: Path, group: str | None) -> dict[str, Any]:
    """The options, with files in the folder of the search for data in memory."""
    options = dict(given.options)
    if not given.values:
        return options
    from aang.config import resolve_training

    config = resolve_training({}, {**options, "weighter": "single-task"}, load_plugins().registry)
    placed = given.placed(config, root)
    make_root(root)
    for name, (table, wanted) in given.tables(placed).items():
        files = getattr(placed, name)
        path = Path(files if isinstance(files, str | Path) else files[0])
        labelled = name in ("train", "dev") and group is not None
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            columns = (*wanted, group) if labelled and group else wanted
            write_file(path, table.copy(columns, array=path.suffix == ".json"))
        options[name] = path if name in ("train", "dev", "test") else (str(path),)
    return options


class AangBest(TextEstimator):
    """The search of ``aang best`` as a scikit-learn classifier.

    Args:
        minutes: How long a fit may take.
        model: Folder or hub name of the encoder; None for the demo's small one.
        candidates: The candidates to try; all by default.
        deploy: ``"one"`` trains the best model on all rows, ``"ensemble"`` several.
        jobs: How many trainings run at once.
        out: The folder of the search; None for one that is removed after the fit.
        options: Further options of ``aang train`` that all candidates share.

    Attributes:
        classes_ (ndarray): the labels, sorted, ``[C]``.
        feature_names_in_ (ndarray): the names of the columns, if ``X`` was a DataFrame.
        verdict_ (Mapping): the content of ``best.json``.

    Examples:
        >>> from aang import AangBest
        >>> texts = 20 * ["It rains again.", "What a fine day!"]
        >>> texts = [f"{text} {number}" for number, text in enumerate(texts)]
        >>> labels = 20 * ["bad", "good"]
        >>> classifier = AangBest(candidates=["tf-idf"]).fit(texts, labels)
        >>> classifier.predict(["It rains."]).tolist()
        ['bad']
    """

    verdict_: Mapping[str, Any]
    _model: Together
    _order: list[int]

    def __init__(
        self,
        *,
        minutes: float = 60.0,
        model: str | None = None,
        candidates: Sequence[str] = (),
        deploy: Literal["one", "ensemble"] = "one",
        jobs: int = 1,
        out: str | PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.minutes = minutes
        self.model = model
        self.candidates = candidates
        self.deploy = deploy
        self.jobs = jobs
        self.out = out
        self.options = options

    def fit(self, X: Any, y: Any, *, groups: Any = None, unlabelled: Any = None) -> "AangBest":  # noqa: N803
        """Search, and train the best candidate on all texts.

        Args:
            X: N texts or pairs, as :meth:`aang.AangClassifier.fit` takes them.
            y: N labels: strings, integers or booleans.
            groups: N values; rows with equal ones stay in one fold.
            unlabelled: further texts of the same kind without labels.

        Raises:
            ValueError: a text or label cannot be used, or a parameter is wrong.
        """
        texts = texts_of(X)
        labels = labels_of(y, len(texts))
        classes = np.unique(labels)
        names = class_names(classes)
        options = dict(self.options or {})
        given = labelled_columns(texts, labels, classes, names)
        if isinstance(weights := options.get("class_weights"), Mapping):
            options["class_weights"] = weights_by_name(weights, classes, names)
        if groups is not None:
            given["group"] = groups_of(groups)
            options["group"] = "group"
        if unlabelled is not None:
            options["unlabelled"] = text_columns(texts_of(unlabelled))
        if texts and isinstance(texts[0], tuple):
            options["text_pair"] = "text_pair"
        if self.model is not None:
            options["model"] = self.model
        with _folder(self.out) as out, bad_input():
            found = best(
                train=given,
                out=out,
                minutes=self.minutes,
                candidates=self.candidates,
                deploy=self.deploy,
                jobs=self.jobs,
                quiet=True,
                **options,
            )
        self.verdict_, self._model = found.verdict_, found._model
        # Its classes are sorted as names, where 10 comes before 2.
        self._order = [found._model.labels.index(name) for name in names]
        self._keep_columns(X)
        self.classes_ = classes
        return self

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> "AangBest":
        """The classifier that a search has deployed.

        Args:
            folder: the folder of the search, or its ``model`` where that holds several members.

        Raises:
            DataError: it is not such a folder.
        """
        opened = open_classifier(Path(folder), choose_device("auto"))
        if opened is None:
            raise DataError(f"{folder}: is no folder of aang best; it has no {BEST}")
        found = cls()
        found._model = opened
        file = Path(folder, BEST)
        found.verdict_ = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        found.classes_ = np.array(opened.labels)
        found._order = list(range(len(opened.labels)))
        return found

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of each class, ``[N, C]``, in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        self._refuse_other_columns(X)
        texts = texts_to_predict(X, pairs=self._model.pairs)
        found = [
            self._model.probabilities(texts[start : start + 32 * WINDOW])
            for start in range(0, len(texts), 32 * WINDOW)
        ]
        shares: np.ndarray = np.concatenate(found)
        return shares[:, self._order]

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The most probable class of each text, ``[N]``; ``""`` where the search's ``answer_at``
        asks for more certainty, in an array of objects if classes are not strings.
        """
        if not self._model.answer_at:
            return super().predict(X)
        shares = self.predict_proba(X)
        found = self.classes_[shares.argmax(axis=1)]
        if found.dtype.kind != "U":  # or numpy would write numbers as strings
            found = found.astype(object)
        return np.where(shares.max(axis=1) >= self._model.answer_at, found, "")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The accuracy of the most probable classes, as ``aang evaluate`` counts, including
        those that ``answer_at`` leaves empty.
        """
        return float(accuracy_score(y, super().predict(X), sample_weight=sample_weight))


@contextmanager
def _folder(out: str | PathLike[str] | None) -> Iterator[str | PathLike[str]]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="aang-best-") as folder:
        yield folder
