"""``AangClassifier``: scikit-learn's conventions, with its own checks."""

import inspect
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from aang import AangClassifier
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from aang_core import ReadReport, load_plugins
from tests.support.data import Columns, read_rows, table_in_memory
from tests.support.plugins import NumericalError
from tests.support.runs import TrainConfig, class_names, labelled_columns
from tests.training.pretend_device import pretend_device

TEXTS = ["It rains again.", "What a fine day!"] * 8
LABELS = ["bad", "good"] * 8


@pytest.fixture
def options(encoder: Path) -> dict[str, Any]:
    return {
        **{"model": str(encoder), "weighter": "single-task", "max_length": 16, "steps": 2},
        **{"eval_every": 1, "batch_size": 8, "precision": "fp32", "device": "cpu"},
    }


class NumbersAsText(AangClassifier):
    """The classifier over numbers written as text.

    scikit-learn's checks make arrays of numbers, which its own estimators of text do not take
    either: ``check_estimator`` then leaves out almost everything. Written as words, numbers let all
    checks run against this classifier's fit and predict.
    """

    def fit(self, X: Any, y: Any) -> "NumbersAsText":  # type: ignore[override]  # noqa: N803
        numbers, labels = validate_data(self, X, y)
        super().fit(words(numbers), labels)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        return super().predict_proba(words(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        tags.classifier_tags.poor_score = True  # one step over digits teaches nothing
        return tags


def words(numbers: np.ndarray) -> list[str]:
    return [" ".join(f"{value:.3g}" for value in row) for row in numbers]


def checked(options: dict[str, Any], *, legacy: bool) -> dict[str, str]:
    """The checks that did not pass, with what they say."""
    classifier = NumbersAsText(**{**options, "steps": 1})
    done = check_estimator(classifier, legacy=legacy, on_skip=None, on_fail=None)
    assert len(done) > (40 if legacy else 10)
    return {
        check["check_name"]: f"{check['status']}: {check['exception']}"
        for check in done
        if check["status"] != "passed"
    }


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_of_the_interface(options: dict[str, Any]) -> None:
    assert checked(options, legacy=False) == {}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(options: dict[str, Any]) -> None:
    """All but one: arrays of other libraries, which hold no texts."""
    assert checked(options, legacy=True) == {
        "check_array_api_input": (
            "skipped: SCIPY_ARRAY_API is not set: not checking array_api input"
        )
    }


def test_scikit_learns_checks_know_that_it_takes_texts() -> None:
    """So they leave out those that make numbers, as for its own estimators of text."""
    with pytest.warns(SkipTestWarning, match="Can't test estimator AangClassifier"):
        done = check_estimator(AangClassifier())
    assert {check["check_name"]: check["status"] for check in done} == {
        "check_estimator_cloneable": "passed"
    }


def test_every_option_of_training_is_a_parameter() -> None:
    """And in the signature, with those of plug-ins; those about data are not."""
    names = set(inspect.signature(AangClassifier).parameters)
    of_plugins = {option.name for option in load_plugins().registry.options}
    assert "lora" in of_plugins
    assert names == set(AangClassifier().get_params())
    assert set(TrainConfig.model_fields) - names == {
        *("train", "dev", "test", "dataset", "text", "text_pair", "label", "train_rows"),
        *("aux_task", "target", "domain", "out_of_domain", "unlabelled", "out"),
        *("task_type", "label_names", "skip_bad_rows"),
    }
    assert names - set(TrainConfig.model_fields) == {"runs", "quiet"} | of_plugins
    with pytest.raises(TypeError, match="no parameter 'spaec'; did you mean space"):
        AangClassifier(spaec="td")
    with pytest.raises(ValueError, match="Invalid parameter 'spaec'"):
        AangClassifier().set_params(spaec="td")


def test_a_fit_that_fails_leaves_the_classifier_as_it_was(options: dict[str, Any]) -> None:
    """Its classes are those of its model."""
    classifier = AangClassifier(**options)
    with pytest.raises(ValueError, match="lr"):
        classifier.set_params(lr=-1.0).fit(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    found = classifier.set_params(lr=1e-3).fit(TEXTS, LABELS).predict(TEXTS)
    with pytest.raises(ValueError, match="lr"):
        classifier.set_params(lr=-1.0).fit(TEXTS, ["cat", "dog"] * 8)
    assert classifier.predict(TEXTS).tolist() == found.tolist()


def upper(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


def test_it_works_where_classifiers_do(options: dict[str, Any]) -> None:
    """In a pipeline; and a pickle predicts the same."""
    classifier = AangClassifier(**options)
    assert clone(classifier).get_params() == classifier.get_params()
    assert repr(classifier).startswith("AangClassifier(")
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    fitted = make_pipeline(FunctionTransformer(upper), classifier).fit(TEXTS, LABELS)[-1]
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert fitted.score(TEXTS, LABELS) == (fitted.predict(TEXTS) == np.array(LABELS)).mean()


@pytest.mark.full
def test_it_is_searched_and_cross_validated(options: dict[str, Any]) -> None:
    classifier = AangClassifier(**options)
    scores = cross_val_score(classifier, np.array(TEXTS), LABELS, cv=2)
    assert ((scores >= 0) & (scores <= 1)).all()
    pipeline = make_pipeline(FunctionTransformer(upper), classifier)
    search = GridSearchCV(pipeline, {"aangclassifier__steps": [1, 2]}, cv=2)
    best = search.fit(TEXTS, LABELS).best_estimator_[-1]
    assert best.result_["steps"] == search.best_params_["aangclassifier__steps"]
    again = pickle.loads(pickle.dumps(best))
    assert (again.predict_proba(TEXTS) == best.predict_proba(TEXTS)).all()
    assert best.score(TEXTS, LABELS) == (best.predict(TEXTS) == np.array(LABELS)).mean()


def test_a_pickle_from_an_accelerator_is_read_without_one(options: dict[str, Any]) -> None:
    """It holds the model on the CPU; the model that is pickled stays where it is."""
    classifier = AangClassifier(**options).fit(TEXTS, LABELS)
    expected = classifier.predict_proba(TEXTS)
    with pretend_device():
        classifier.set_params(device="cuda:77").predictor_.model.to("cuda:77")
        pickled = pickle.dumps(classifier)
        assert classifier.predictor_.model.device.type == "cuda"
        assert pickle.loads(pickled).predictor_.model.device.type == "cuda"
    again = pickle.loads(pickled)
    assert again.predictor_.model.device.type == "cpu"
    assert (again.predict_proba(TEXTS) == expected).all()


@pytest.mark.parametrize(
    "labels",
    [
        np.array([10, 2] * 8),
        np.array([10.0, 2.0] * 8),
        np.array([True, False] * 8),
        np.array(["a ", "a"] * 8),
        np.array(["1.5", "2.5"] * 8),
        pd.Series(["b", "a"] * 8, dtype="category"),
    ],
)
def test_predictions_have_the_type_of_the_labels(options: dict[str, Any], labels: Any) -> None:
    """Also where labels, as text, would sort otherwise or be the same."""
    given = np.asarray(labels)
    classifier = AangClassifier(**options).fit(TEXTS, labels)
    assert classifier.classes_.tolist() == sorted(set(given.tolist()))
    assert classifier.predict(TEXTS).dtype == classifier.classes_.dtype
    shares = classifier.predict_proba(TEXTS)
    assert shares.shape == (16, 2)
    assert shares.sum(axis=1) == pytest.approx(1)
    # The columns are those of classes_, whatever the order of the model's labels is.
    (own,) = classifier.predictor_.predict([(TEXTS[0], None)])
    assert sorted(own.probabilities.values()) == pytest.approx(sorted(shares[0]), abs=1e-6)
    names = list(own.probabilities)
    if given.dtype.kind == "i":
        assert names == ["10", "2"]
        assert list(own.probabilities.values())[::-1] == pytest.approx(shares[0].tolist())


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (["1.0.0", "1.1.0"], ["1.0.0", "1.1.0"]),
        (["1.00", "2"], ["1", "2"]),
        (["2", "2.000"], ["0: 2", "1: 2"]),
        (["", "a"], ["0: ''", "1: a"]),
        ([" ", "  ", "1.0"], ["0: ' '", "1: '  '", "2: 1"]),
        (["\ud800", "\ufffd"], ["0: \ufffd", "1: \ufffd"]),
        ([1.0, 2.0], ["1", "2"]),
        ([1.0, 1e20], ["1", "1e+20"]),
    ],
)
def test_every_class_has_a_name_that_training_leaves_as_it_is(
    classes: list[Any], names: list[str]
) -> None:
    """Else the model would have another name for it, and ``fit`` would not find it."""
    given = np.array(classes, dtype=object)
    assert class_names(given) == names
    columns = labelled_columns(["text"] * len(classes), given, given, names)
    table = table_in_memory(columns, "data", Columns())
    read = read_rows(table, Columns(), ReadReport())
    assert [example.label for example in read.examples] == names


@pytest.mark.parametrize("labels", [["", "a"], ["1.0.0", "1.1.0"], ["2", "2.000"]])
def test_classes_that_are_read_otherwise_than_written(
    options: dict[str, Any], labels: list[str]
) -> None:
    classifier = AangClassifier(**options | {"steps": 1}).fit(TEXTS, labels * 8)
    assert classifier.classes_.tolist() == labels
    assert set(classifier.predict(TEXTS)) <= set(labels)
    assert classifier.predict_proba(TEXTS).sum(axis=1) == pytest.approx(1)


def test_pairs_dev_and_a_kept_run(options: dict[str, Any], tmp_path: Path) -> None:
    pairs = pd.DataFrame({"a": TEXTS, "b": TEXTS[::-1]})
    more = pd.DataFrame({"a": [f"{text} and nothing else was said" for text in TEXTS], "b": TEXTS})
    reading = {"weighter": "static", "space": "unlabelled/bert-op/bidirectional/denoise"}
    classifier = AangClassifier(**options | reading, runs=tmp_path / "runs")
    classifier.fit(pairs, LABELS, dev=(pairs[:4], LABELS[:4]), unlabelled=more)
    assert classifier.run_.records.data.parts["dev"].examples == 4
    assert classifier.run_.records.data.parts["train"].examples == 16
    assert classifier.run_.folder.parent == tmp_path / "runs"
    with pytest.warns(UserWarning, match="16 × text longer than 16 tokens, cut"):
        assert classifier.predict(list(zip(TEXTS, TEXTS, strict=True))).shape == (16,)
    with pytest.raises(ValueError, match="X and dev: one holds pairs of texts, the other single"):
        classifier.fit(pairs, LABELS, dev=(TEXTS, LABELS))
    with pytest.raises(ValueError, match="X and unlabelled: one holds pairs of texts"):
        classifier.fit(TEXTS, LABELS, unlabelled=more)
    with pytest.raises(ValueError, match="this classifier was fitted to pairs of texts"):
        classifier.predict(TEXTS)
    assert classifier.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="during fit: a, b, in this order; got b, a"):
        classifier.predict(pairs[["b", "a"]])
    with pytest.raises(ValueError, match="got text"):
        classifier.predict(pd.DataFrame({"text": TEXTS}))


@pytest.mark.parametrize("labels", [[2.0, 3.0], [" a", "a"], [False, True]])
def test_class_weights_are_given_by_class(
    options: dict[str, Any], tmp_path: Path, labels: list[Any]
) -> None:
    """As ``classes_`` has it, whatever its name in the saved model is."""
    weights = {labels[0]: 3.0, labels[1]: 1.0}
    classifier = AangClassifier(**options, class_weights=weights, runs=tmp_path)
    classifier.fit(TEXTS, labels * 8)
    assert [*classifier.run_.records.data.class_weights.values()] == [3.0, 1.0]


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[:3], "inconsistent numbers of samples: [16, 3]"),
        (TEXTS, None, "requires y to be passed"),
        ([], [], "0 sample(s)"),
        ("text", ["a"], "X is one text; give a list of texts"),
        ([*TEXTS[:3], 3.5], LABELS[:4], "X, row 3: holds 3.5, which is not text"),
        ([*TEXTS[:3], " "], LABELS[:4], "X, row 3: is empty"),
        (
            [("a", "b"), ("a", "b", "c")],
            ["x", "y"],
            "holds ('a', 'b'), which is not text; give one",
        ),
        (np.ones((2, 3)), ["x", "y"], "X has the shape (2, 3); texts take one column"),
        (TEXTS, ["a", 1] * 8, "y mixes strings and numbers"),
        (TEXTS, ["a", None] * 8, "y, row 1: Input y contains NaN"),
        (TEXTS, ["a"] * 16, "y holds one class"),
        (TEXTS, np.linspace(0, 1, 16), "Unknown label type: continuous"),
        (TEXTS[:2], LABELS[:2], "no class has two examples"),
    ],
)
def test_bad_input(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        AangClassifier(weighter="single-task").fit(texts, labels)


def test_an_error_names_no_folder_that_is_gone(options: dict[str, Any], tmp_path: Path) -> None:
    """Without ``runs`` nothing is kept, so there is nothing to go on with."""
    failing = {**options, "lr": 1e30, "steps": 20, "eval_every": 20}
    with pytest.raises(NumericalError) as gone:
        AangClassifier(**failing).fit(TEXTS, LABELS)
    (note,) = gone.value.__notes__
    assert note == "Nothing of this fit is kept; AangClassifier(runs=FOLDER) keeps it."
    with pytest.raises(NumericalError) as kept:
        AangClassifier(**failing, runs=str(tmp_path)).fit(TEXTS, LABELS)
    assert str(tmp_path) in kept.value.__notes__[0]


def test_a_bad_parameter_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="steps=-1: input should be greater than 0"):
        AangClassifier(steps=-1).fit(TEXTS, LABELS)
