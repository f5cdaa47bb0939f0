"""Which unlabelled texts to label next."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from aang.assembly import encoder_of
from aang.assembly.labelled_tasks import end_task_columns
from aang.config import TrainConfig
from aang.corpora import LabelledTask
from aang.corpora.labelled_task import text_key
from aang.corpora.unlabelled_texts import UnlabelledTexts

from aang_core import Example, ReadReport
from aang_plugin_best.quick import FrozenMean
from aang_plugin_best.rows import Rows, example_texts, texts_of
from aang_plugin_best.together import Probabilities

MOST_TEXTS = 2000
"""The most unlabelled texts to predict, drawn from all."""
MOST_NEXT = 100
CLUSTERS = 20

Predicted = Callable[[Sequence[Example]], Probabilities]
"""The probabilities of n examples, ``[n, C]``; only of the first ones if time has run out."""


def label_next(
    config: TrainConfig, rows: Rows, test: Sequence[Example], predicted: Predicted
) -> tuple[list[dict[str, Any]], int]:
    """The unlabelled texts to label next, at most 100.

    They are the texts that the model is least sure of, spread over clusters of the frozen encoder's
    features: every cluster gives its least sure text, then each its second one, and so on.

    Args:
        config: names the texts and the encoder.
        rows: the labelled rows, whose texts stay out.
        test: examples whose texts stay out, too.
        predicted: gives the probabilities of the deployed model.

    Returns:
        Records with text, prediction, margin between the two likeliest classes, and cluster; and
        the number of texts that they were chosen from.

    Raises:
        AangError: a file cannot be read, or no text is left.
    """
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler

    held_out = LabelledTask("labelled", (), rows.examples, tuple(test), rows.kind.labels)
    texts = UnlabelledTexts(config.unlabelled, end_task_columns(config), held_out, ReadReport())
    examples = _drawn(texts, config.seed)
    probabilities = predicted(examples)
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    margins = first - second
    # Clusters of all texts would include some that the model is sure of.
    unsure = np.argsort(margins, kind="stable")[: 10 * MOST_NEXT]
    features = FrozenMean(encoder_of(config), config).transform(
        texts_of([examples[i] for i in unsure])
    )
    clusters = KMeans(min(CLUSTERS, len(unsure)), n_init=1, random_state=0).fit_predict(
        StandardScaler().fit_transform(features)
    )
    turns = [int((clusters[:place] == clusters[place]).sum()) for place in range(len(unsure))]
    records = [
        {
            **example_texts(examples[unsure[place]]),
            "predicted": rows.kind.labels[int(probabilities[unsure[place]].argmax())],
            "margin": round(float(margins[unsure[place]]), 4),
            "cluster": int(clusters[place]),
        }
        for place in np.argsort(turns, kind="stable")[:MOST_NEXT]
    ]
    return records, len(probabilities)


def _drawn(texts: Iterable[Example], seed: int) -> list[Example]:
    """Distinct texts in random order; a uniform draw if there are more than can be predicted.

    There may be millions, so not all are held (Vitter, 1985, algorithm R).
    """
    generator = np.random.default_rng(seed)
    kept: list[Example] = []
    seen: set[int] = set()
    for example in texts:
        if (key := hash(text_key(example))) in seen:
            continue
        seen.add(key)
        place = len(kept) if len(kept) < MOST_TEXTS else int(generator.integers(len(seen)))
        kept[place : place + 1] = [example] if place < MOST_TEXTS else kept[place : place + 1]
    return [kept[i] for i in generator.permutation(len(kept))]
