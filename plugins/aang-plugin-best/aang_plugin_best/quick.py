"""Candidates that take seconds, built from scikit-learn, and how fitted ones are saved."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aang.assembly import encoder_of
from aang.config import TrainConfig
from aang.runs import choose_device
from aang_plugin_compare.quick_controls import FrozenEncoder
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler

from aang_core import ConfigError, DataError, Example
from aang_core.storage import whole_file, writing
from aang_plugin_best.together import temperature_of

SCORING = {"macro-f1": "f1_macro", "micro-f1": "f1_micro", "accuracy": "accuracy"}


def tf_idf(config: TrainConfig) -> Any:
    """Logistic regression on TF-IDF of words, pairs of words and parts of words."""
    # Punctuation counts, because tasks use it to mark what they ask about, as in "[[ this ]]".
    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\w+|[^\w\s]+"
    )
    characters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2
    )
    features: Any = FeatureUnion([("words", words), ("characters", characters)])
    if config.text_pair is not None:
        features = ColumnTransformer([(f"text {i}", features, i) for i in (0, 1)])
    return Pipeline([("features", features), ("classes", _regression(config, (1, 10, 100)))])


def frozen_encoder(config: TrainConfig) -> Any:
    """Logistic regression on the mean of the encoder's tokens.

    Raises:
        ConfigError: the encoder is to have random weights.
    """
    if config.from_scratch:
        raise ConfigError("with --from-scratch, the encoder that would be frozen knows nothing")
    return Pipeline(
        [
            ("encoder", FrozenMean(encoder_of(config), config)),
            ("scale", StandardScaler()),
            ("classes", _regression(config, (0.01, 0.1, 1))),
        ]
    )


def _regression(config: TrainConfig, penalties: Sequence[float]) -> Any:
    """Logistic regression whose penalty is chosen by cross-validation on its own rows."""
    # Classes count equally in training if they do in the metric.
    weights = "balanced" if config.metric == "macro-f1" else None
    # Folds without a row of some class are fine here: their scores are means of many.
    return Calibrated(
        LogisticRegression(max_iter=1000, class_weight=weights),
        {"C": list(penalties)},
        scoring=SCORING[config.metric],
    )


class Calibrated(GridSearchCV):  # type: ignore[misc]  # no types there
    """A search for the penalty that also divides the logits of the best model by a temperature.

    The penalty decides how sure the probabilities are. On more rows another one may be best, for
    which an earlier temperature would be wrong.
    """

    def fit(self, features: Any, labels: Any, groups: Any = None) -> "Calibrated":
        """Search, fit the best one to all N rows, and calibrate it on rows that it has not seen.

        Args:
            features: of the rows.
            labels: int64 ``[N]``.
            groups: of rows that stay together, int64 ``[N]``: held-out rows are not new if others
                of their group are known. None if each row is its own.

        Raises:
            DataError: no class has two rows.
        """
        most = int(np.bincount(labels).max())
        if most < 2:
            raise DataError("its training rows have no class twice, so no penalty can be chosen")
        count, apart = min(3, most), len(labels) if groups is None else len(np.unique(groups))
        self.cv = StratifiedKFold(count, shuffle=True, random_state=0)
        if 1 < apart < len(labels):
            self.cv = StratifiedGroupKFold(min(count, apart), shuffle=True, random_state=0)
        else:
            groups = None
        with warnings.catch_warnings():
            # Of classes with fewer rows than folds.
            warnings.filterwarnings("ignore", "The least populated class")
            super().fit(features, labels, groups=groups)
            folds = list(self.cv.split(features, labels, groups))
        classes = int(max(labels)) + 1
        logits, truth = [], []
        for rest, held_out in folds:
            model = clone(self.best_estimator_).fit(features[rest], labels[rest])
            known = held_out[np.isin(labels[held_out], model.classes_)]
            logits.append(log_probabilities(model, features[known], classes))
            truth.append(labels[known])
        temperature = temperature_of(np.concatenate(logits), np.concatenate(truth))
        self.best_estimator_.coef_ /= temperature
        self.best_estimator_.intercept_ /= temperature
        return self


class FrozenMean(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """The mean of an encoder's tokens, as features; each text goes through the encoder once.

    Args:
        encoder: folder or hub name of the encoder.
        config: how it is loaded.
    """

    def __init__(self, encoder: str, config: TrainConfig) -> None:
        self.encoder = encoder
        self.config = config
        self._loaded: FrozenEncoder | None = None

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, texts: Any, labels: Any = None) -> "FrozenMean":
        """Does nothing."""
        return self

    def transform(self, texts: Any) -> NDArray[np.float32]:
        """Encode N texts, or pairs of texts ``[N, 2]``: float32 ``[N, H]``."""
        examples = [Example(t) if isinstance(t, str) else Example(t[0], t[1]) for t in texts]
        found: NDArray[np.float32] = self.load()(examples)[:, 1]
        return found

    def load(self) -> FrozenEncoder:
        """Load the encoder, once; then its folder may be removed."""
        if self._loaded is None:
            device = choose_device(self.config.device)
            self._loaded = FrozenEncoder(self.encoder, self.config, device)
        return self._loaded

    def save(self, folder: Path) -> None:
        """Write a copy of the encoder."""
        from aang.modeling import load_tokenizer
        from aang.modeling.loading import quiet
        from transformers import AutoModel

        trusted = self.config.trust_remote_code
        with quiet():  # it warns that there is no head
            model = AutoModel.from_pretrained(self.encoder, trust_remote_code=trusted)
            model.save_pretrained(folder)
        load_tokenizer(self.encoder, trust_remote_code=trusted).save_pretrained(folder)


def log_probabilities(model: Any, texts: Any, classes: int) -> NDArray[np.float32]:
    """Log-probabilities, float32 ``[N, C]``; a class that was never seen has probability 1e-9."""
    found = np.full((np.shape(texts)[0], classes), 1e-9)
    found[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(texts)
    logs: NDArray[np.float32] = np.log(found.clip(1e-9)).astype(np.float32)
    return logs


def write_logits(file: Path, logits: NDArray[np.float32]) -> None:
    """Write what a fitted candidate has predicted.

    Raises:
        StorageError: the file cannot be written.
    """
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as draft:
            save_file({"logits": logits}, draft)


def read_logits(file: Path) -> NDArray[np.float32]:
    """Read what :func:`write_logits` wrote."""
    found: NDArray[np.float32] = load_file(file)["logits"]
    return found


def save_fitted(model: Any, folder: Path) -> None:
    """Save a fitted candidate, without pickles, which would run code when loaded."""
    from skops.io import dump

    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, Pipeline) and isinstance(model.steps[0][1], FrozenMean):
        model.steps[0][1].save(folder / "encoder")
        model = Pipeline(model.steps[1:])
    if isinstance(model, Pipeline) and isinstance(model.steps[-1][1], GridSearchCV):
        # The search holds functions, and only the estimator that it found predicts.
        name, search = model.steps[-1]
        model = Pipeline([*model.steps[:-1], (name, search.best_estimator_)])
    dump(model, folder / "model.skops")


def load_fitted(folder: Path, max_length: int) -> Any:
    """Load what :func:`save_fitted` wrote.

    Args:
        folder: where it is.
        max_length: tokens that texts are cut to, if it reads features of an encoder.

    Raises:
        ConfigError: the file holds types that are not scikit-learn's, which could run code.
    """
    from skops.io import get_untrusted_types, load

    file = folder / "model.skops"
    own = {"numpy.dtype"}
    if strange := sorted(set(get_untrusted_types(file=file)) - own):
        raise ConfigError(
            f"{file}: holds {strange[0]}, which is not a type of scikit-learn and could run code"
        )
    model = load(file, trusted=sorted(own))
    if (folder / "encoder").is_dir():
        frozen = FrozenMean(
            str(folder / "encoder"), TrainConfig.model_validate({"max_length": max_length})
        )
        frozen.load()
        return Pipeline([("encoder", frozen), *model.steps])
    return model
