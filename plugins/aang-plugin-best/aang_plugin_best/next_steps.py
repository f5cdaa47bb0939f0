"""What a person wants to know next: where the model errs, and which rows and texts to look at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aang_core import Example
from aang_core.storage import csv_line, write_file, writing
from aang_plugin_best.answering import answer_at, answered
from aang_plugin_best.deploy import Together
from aang_plugin_best.label_next import label_next
from aang_plugin_best.learning_curve import learning_curve
from aang_plugin_best.race import Race
from aang_plugin_best.rows import Rows, example_texts
from aang_plugin_best.together import Probabilities, logs_of

if TYPE_CHECKING:
    from aang_plugin_best.search import Search

CONFUSION, DOUBTFUL, LABEL_NEXT = "confusion.csv", "doubtful.csv", "label_next.csv"
SHOWN = 10
"""How many rows of each file are also in ``best.json`` and on the page."""
AT_ONCE = 256


def next_steps(
    search: "Search",
    race: Race,
    rows: Rows,
    chosen: str,
    model: Together,
    probabilities: Probabilities,
) -> dict[str, Any]:
    """Find errors, doubtful labels, texts to label next and the learning curve; write the files.

    Args:
        search: the search.
        race: has ended; its remaining time goes to the unlabelled texts and the learning curve.
        rows: those that the chosen candidate has predicted.
        chosen: the chosen candidate.
        model: the deployed model.
        probabilities: its calibrated out-of-fold probabilities, ``[N, C]``.

    Returns:
        Entries for ``best.json``.

    Raises:
        AangError: a file cannot be read or written.
    """
    labels, root = rows.kind.labels, race.runs.root
    found = errors(rows, probabilities)
    if found["confusion"]:
        matrix = zip(labels, found["confusion"], strict=True)
        write_table(root / CONFUSION, ["true", *labels], ([name, *row] for name, row in matrix))
    doubts = doubtful(rows, probabilities)
    texts = example_texts(rows.examples[0])
    header = ["place", *texts, "label", "suggested", "P(suggested)", "P(label)"]
    write_table(root / DOUBTFUL, header, (record.values() for record in doubts))
    found |= {
        "doubtful": {"rows": len(doubts), "first": doubts[:SHOWN]},
        "answered": answered(rows, probabilities),
    }
    if search.asked.answer_at is not None:
        found["answer_at"] = answer_at(rows, probabilities, search.asked.answer_at)
    if search.config.unlabelled:

        def predicted(examples: Sequence[Example]) -> Probabilities:
            texts = [(e.text, e.text_pair) for e in examples]
            parts = [model.probabilities(texts[:AT_ONCE])]
            while len(parts) * AT_ONCE < len(texts) and race.clock.left > 0:
                begin = len(parts) * AT_ONCE
                parts.append(model.probabilities(texts[begin : begin + AT_ONCE]))
            return np.concatenate(parts)

        test = [example for part in search.held_out.values() for example in part]
        wanted, count = label_next(search.config, search.rows, test, predicted)
        write_table(root / LABEL_NEXT, wanted[0], (record.values() for record in wanted))
        found["label_next"] = {"texts": len(wanted), "of": count, "first": wanted[:SHOWN]}
    candidate = next(c for c in search.candidates if c.name == chosen)
    # Without time for all folds there is none for parts of them.
    finished = race.board.complete(chosen)
    found["learning_curve"] = learning_curve(race, candidate) if finished else None
    return found


def errors(rows: Rows, probabilities: Probabilities) -> dict[str, Any]:
    """The confusion matrix, rows for true classes, and precision, recall and F1 of each class.

    Args:
        rows: the rows.
        probabilities: of a model that has not seen them, ``[N, C]``.
    """
    logits = torch.from_numpy(logs_of(probabilities))
    found = rows.kind.errors(torch.from_numpy(rows.truth), logits)
    return {
        "confusion": [list(row) for row in found.confusion],
        "by_class": {name: dict(of) for name, of in found.classes.items()},
    }


def doubtful(rows: Rows, probabilities: Probabilities) -> list[dict[str, Any]]:
    """The rows whose labels are in doubt, the most doubtful first.

    Confident learning estimates how many rows of each class belong to which other one, and takes
    those whose own class is least probable compared with the likeliest (Northcutt et al., 2021,
    section 3.2, prune by noise rate).

    Args:
        rows: the rows.
        probabilities: of a model that has not seen them, calibrated, ``[N, C]``.
    """
    from cleanlab.filter import find_label_issues

    found = find_label_issues(
        rows.truth,
        probabilities,
        return_indices_ranked_by="normalized_margin",
        min_examples_per_class=0,
        n_jobs=1,
    )
    return [
        {
            "place": rows.places[i],
            **example_texts(rows.examples[i]),
            "label": rows.examples[i].label,
            "suggested": rows.kind.labels[int(probabilities[i].argmax())],
            "P(suggested)": round(float(probabilities[i].max()), 4),
            "P(label)": round(float(probabilities[i, rows.truth[i]]), 4),
        }
        for i in found
    ]


def write_table(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file.

    Raises:
        StorageError: it cannot be written.
    """
    with writing(path):
        write_file(path, "".join(map(csv_line, [header, *rows])))


def next_words(verdict: Mapping[str, Any]) -> Iterator[str]:
    """The findings for people, a line each; the folder has the files."""
    if (wanted := verdict.get("answer_at")) is not None:
        yield "  " + _answer_words(wanted)
    if curve := verdict.get("learning_curve"):
        low, high = (100 * end for end in curve["more"]["interval"])
        first, last = curve["points"][0], curve["points"][-1]
        yield (
            f"  learning curve: {verdict['metric']} {100 * first['score']:.1f} with "
            f"{first['rows']} rows, {100 * last['score']:.1f} with {last['rows']}, "
            f"scored on {curve['predicted']} rows; "
            f"{curve['more']['labels']} more labels would bring about "
            f"{100 * curve['more']['gain']:+.1f} points ({low:+.1f} to {high:+.1f})"
        )
    if (doubts := verdict.get("doubtful")) is not None:
        yield f"  doubtful labels: {doubts['rows']}, in {DOUBTFUL}, the most doubtful first"
    if wanted := verdict.get("label_next"):
        yield f"  to label next: {wanted['texts']} of {wanted['of']} texts, in {LABEL_NEXT}"


def _answer_words(wanted: Mapping[str, Any]) -> str:
    accuracy, checked = wanted["accuracy"], wanted["checked"]
    if wanted["threshold"] is None:
        return (
            f"answers with accuracy {accuracy:g}: no threshold reaches it, so every prediction is "
            "empty; give --answer-at a lower accuracy"
        )
    found = "none" if checked["accuracy"] is None else f"{checked['accuracy']:.3f}"
    return (
        f"answers with accuracy {accuracy:g}: {wanted['answered']:.0%} of the texts, from "
        f"probability {wanted['threshold']:.2f} on; other predictions are empty. A threshold "
        f"chosen on the other folds answers {checked['answered']:.0%} with accuracy {found}"
    )
