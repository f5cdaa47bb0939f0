"""A classifier of texts with scikit-learn's conventions."""

import difflib
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np
from aang.config import schema_of
from aang.from_python.training import train
from aang.runs.devices import choose_device
from aang.runs.predict import WINDOW, Predictor
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from aang_core import ConfigError, DataError, ReadReport, load_plugins
from aang_plugin_best.arrays import (
    class_names,
    column_names,
    labelled_columns,
    labels_of,
    text_columns,
    texts_of,
    texts_to_predict,
    weights_by_name,
)

_OF_FIT = {
    *("train", "dev", "test", "dataset", "text", "text_pair", "label", "train_rows"),
    *("aux_task", "target", "domain", "out_of_domain", "unlabelled", "out"),
    *("task_type", "label_names", "skip_bad_rows"),
}
"""Options that ``fit`` receives or chooses: they name data, the kind of task or the run folder.

Incomplete rows are errors, as scikit-learn expects.
"""

_OF_ITS_OWN: Mapping[str, Any] = {"runs": None, "quiet": True}


@cache
def _defaults() -> Mapping[str, Any]:
    """All parameters, those of plug-ins included, with their defaults."""
    names = [n for n in schema_of(load_plugins().registry).model_fields if n not in _OF_FIT]
    return {**dict.fromkeys(names), **_OF_ITS_OWN}


class TextEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """What scikit-learn expects of every classifier of texts, given its ``predict_proba``."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The most probable class of each text, ``[N]``; raises like :meth:`predict_proba`."""
        shares = self.predict_proba(X)
        found: np.ndarray = self.classes_[shares.argmax(axis=1)]
        return found

    def _keep_columns(self, X: Any) -> None:  # noqa: N803
        """Set ``feature_names_in_`` to the names of the columns of ``X``, if it has some."""
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _refuse_other_columns(self, X: Any) -> None:  # noqa: N803
        """Refuse columns that have other names or another order than those of ``fit``."""
        names, fitted = column_names(X), vars(self).get("feature_names_in_")
        if names is not None and fitted is not None and [*names] != [*fitted]:
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"{', '.join(fitted)}, in this order; got {', '.join(names)}"
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class AangClassifier(TextEstimator):
    """Trains as ``aang train`` does, and predicts, as scikit-learn expects of a classifier.

    It works in ``Pipeline``, ``cross_val_score`` and ``GridSearchCV``. Every fit with the same
    parameters and data gives the same classifier.

    Args:
        **parameters: The options of ``aang train`` that name neither data nor the kind of task,
            which is one class per text, with underscores for dashes, such as ``space``,
            ``weighter``, ``model``, ``steps``, ``lr``, ``seed`` and ``set``, a mapping. None, the
            default of each, means the default of ``aang train``. In addition, ``runs`` is a folder
            in which every fit keeps its run folder; None keeps none. ``quiet=False`` shows the
            progress of every fit.

    Attributes:
        classes_ (ndarray): the labels, sorted, ``[C]``.
        feature_names_in_ (ndarray): the names of the columns, if ``X`` was a DataFrame.
        result_ (Mapping): the content of the run's ``result.json``.
        run_ (Run | None): the run, if ``runs`` names a folder.

    Raises:
        TypeError: There is no such parameter.

    Examples:
        >>> from aang import AangClassifier
        >>> texts = 10 * ["It rains again.", "What a fine day!"]
        >>> labels = 10 * ["bad", "good"]
        >>> classifier = AangClassifier(weighter="single-task", steps=2).fit(texts, labels)
        >>> classifier.classes_.tolist()
        ['bad', 'good']
        >>> classifier.predict_proba(["It snows."]).shape
        (1, 2)
    """

    def __init__(self, **parameters: Any) -> None:
        if unknown := sorted(parameters.keys() - _defaults().keys()):
            near = difflib.get_close_matches(unknown[0], list(_defaults()), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"AangClassifier has no parameter {unknown[0]!r}{hint}")
        for name, default in _defaults().items():
            setattr(self, name, parameters.get(name, default))

    # help() and scikit-learn read the parameters from here.
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter("self", Parameter.POSITIONAL_ONLY),
            *(Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in _defaults().items()),
        ]
    )

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        dev: tuple[Any, Any] | None = None,
        unlabelled: Any = None,
        domain: Any = None,
    ) -> "AangClassifier":
        """Train on texts and labels.

        Args:
            X: N texts, or N pairs of texts: a list, a Series, an array ``[N]``, or a DataFrame or
                array with one column of texts or two.
            y: N labels: strings, integers or booleans.
            dev: texts and labels of the dev set; those of a class that ``y`` lacks count as wrong.
                None splits off ``dev_fraction`` of the training data, stratified by class.
            unlabelled: further texts of the same kind without labels, for the data ``unlabelled``.
            domain: in-domain texts, for the data ``s2orc``.

        Raises:
            ValueError: a text or label cannot be used, or a parameter is wrong.
        """
        texts = texts_of(X)
        labels = labels_of(y, len(texts))
        classes = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(f"y holds one class, {classes[0]!r}; a classifier needs at least two")
        every = classes
        if dev is not None:
            dev_texts = texts_of(dev[0])
            dev_labels = labels_of(dev[1], len(dev_texts))
            if not set(dev_labels.tolist()) & set(labels.tolist()):
                raise ValueError(
                    f"no label of dev, such as {dev_labels.tolist()[0]!r}, occurs in y"
                )
            every = np.unique(np.concatenate([labels, dev_labels]))
        names = class_names(every)
        # Names that spell numbers, such as "1.5", would otherwise be taken for numbers.
        given: dict[str, Any] = {"task_type": "single-label"}
        given["train"] = labelled_columns(texts, labels, every, names)
        if dev is not None:
            given["dev"] = labelled_columns(dev_texts, dev_labels, every, names)
        if unlabelled is not None:
            given["unlabelled"] = text_columns(texts_of(unlabelled))
        if domain is not None:
            given["domain"] = text_columns(texts_of(domain))
        if "text_pair" in given["train"]:
            given["text_pair"] = "text_pair"
        for name in ("dev", "unlabelled"):
            if name in given and ("text_pair" in given[name]) != ("text_pair" in given["train"]):
                raise ValueError(f"X and {name}: one holds pairs of texts, the other single texts")
        named = {name: getattr(self, name) for name in _defaults() if name not in _OF_ITS_OWN}
        options = {name: value for name, value in named.items() if value is not None}
        if isinstance(weights := options.get("class_weights"), Mapping):
            options["class_weights"] = weights_by_name(weights, every, names)
        with bad_input(), _run_folder(self.runs) as out:
            run = train(**options, **given, out=out, quiet=self.quiet)
            predictor = Predictor.load(
                run.folder,
                choose_device(self.device or "auto"),
                trust_remote_code=bool(self.trust_remote_code),
            )
        place = {label: i for i, label in enumerate(predictor.labels)}
        of_train = np.searchsorted(every, classes).tolist()
        # Set only at the end: a fit that fails leaves the classifier as it was.
        self.predictor_ = predictor
        self._keep_columns(X)
        self.classes_ = classes
        self._order = [place[names[i]] for i in of_train]
        self.result_ = run.result
        self.run_ = None if self.runs is None else run
        return self

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a pickle, which holds the model on the CPU: put it on ``device`` if it exists."""
        super().__setstate__(state)
        if "predictor_" in state:
            with suppress(ConfigError):
                self.predictor_.model.to(choose_device(self.device or "auto"))  # type: ignore[arg-type]

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of each class, ``[N, C]``, in the order of ``classes_``.

        Raises:
            NotFittedError: there is no classifier yet.
            ValueError: a text cannot be used.
        """
        check_is_fitted(self)
        self._refuse_other_columns(X)
        texts = texts_to_predict(X, pairs=self.predictor_.columns.text_pair is not None)
        report = ReadReport()
        found = self.predictor_.predict(texts, window=WINDOW, report=report)
        rows = np.array([list(p.probabilities.values()) for p in found], dtype=np.float64)
        for line in report.lines():
            warnings.warn(line, stacklevel=2)
        return rows[:, self._order]


@contextmanager
def _run_folder(runs: str | Path | None) -> Iterator[Path]:
    """A new folder for a run: under ``runs``, or one that is removed afterwards."""
    if runs is not None:
        Path(runs).mkdir(parents=True, exist_ok=True)
        # A new name even if several processes fit at once, as GridSearchCV does with n_jobs.
        yield Path(tempfile.mkdtemp(prefix="fit-", dir=runs))
        return
    with tempfile.TemporaryDirectory(prefix="aang-") as folder:
        try:
            yield Path(folder)
        except BaseException as error:
            # Remove notes about resuming in a folder that is removed.
            if any(folder in note for note in getattr(error, "__notes__", ())):
                error.__notes__ = [note for note in error.__notes__ if folder not in note]
                error.add_note("Nothing of this fit is kept; AangClassifier(runs=FOLDER) keeps it.")
            raise


@contextmanager
def bad_input() -> Iterator[None]:
    """Raise the error that scikit-learn's tools expect for bad data and parameters."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise ValueError(str(error)) from error
