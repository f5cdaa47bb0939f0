"""What more labels would bring: the chosen candidate, trained on parts of the rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from aang_plugin_compare.cells import Job
from numpy.typing import NDArray

from aang_plugin_best.board import Board, interval_of
from aang_plugin_best.quick import read_logits, write_logits
from aang_plugin_best.race import SHARES, Candidate, Race
from aang_plugin_best.rows import Rows

FEWEST_OF_CLASS = 3
"""Every part has at least this many rows of each class, or all of them; linear candidates choose
their penalty on three folds."""
MORE = 100
"""Labels that a person might add."""


def learning_curve(race: Race, candidate: Candidate) -> dict[str, Any] | None:
    """Train a candidate on parts of the rows, and predict the folds that it has not seen.

    It goes fold by fold while time is left, so that all points are over the same rows.

    Args:
        race: has trained the candidate on all folds.
        candidate: the chosen one.

    Returns:
        The entry for ``best.json``: a point for each part, and the gain from more labels; None if
        there was no time for one fold, or if classes are so small that every part has all rows.
    """
    rows = race.board.rows
    if all(drawn(rows, k, SHARES[0]).sum() == (rows.folds != k).sum() for k in range(rows.count)):
        return None
    seed = race.board.complete(candidate.name)[0]
    parts = {share: Board(rows, race.board.metric) for share in SHARES}
    measure = _fitted if candidate.is_fitted else _trained
    folds = 0
    while folds < rows.count and measure(race, candidate, seed, folds, parts):
        folds += 1
    if folds == 0:
        return None
    # Of all rows, too, only these folds: others would choose the steps of this point alone.
    of, whole = race.board.found[candidate.name][seed], Board(rows, race.board.metric)
    for k in range(folds):
        whole.add(candidate.name, seed, of.steps, k, of.logits[:, rows.folds == k])
    return _points(whole, {**parts, 1.0: whole}, candidate.name, seed, folds)


def drawn(rows: Rows, fold: int, share: float) -> NDArray[np.bool_]:
    """A part of the rows outside a fold, stratified by class: a mask ``[N]``.

    A larger part contains every smaller one.
    """
    generator = np.random.default_rng(fold)
    found = np.zeros(len(rows.truth), dtype=bool)
    for number in range(len(rows.kind.labels)):
        of_class = np.flatnonzero((rows.truth == number) & (rows.folds != fold))
        # Without the random number, every class would be rounded in the same direction.
        count = int(share * len(of_class) + generator.random())
        order = generator.permutation(of_class)
        found[order[: max(FEWEST_OF_CLASS, count)]] = True
    return found


def _fitted(
    race: Race, candidate: Candidate, seed: int, fold: int, parts: Mapping[float, Board]
) -> bool:
    """Fit a candidate to each part outside a fold; returns whether there was time."""
    file = race.logits_file(candidate, seed, fold, "-shares")
    if not file.is_file():
        if (race.seconds(candidate) or 0.0) * len(parts) > race.clock.left:
            return False
        model, found = None, []
        for share in parts:
            chosen = drawn(race.board.rows, fold, share)
            model, logits = race.fit(candidate, seed, fold, chosen, model)
            found.append(logits)
        write_logits(file, np.stack(found))
    for part, logits in zip(parts.values(), read_logits(file), strict=True):
        part.add(candidate.name, seed, (0,), fold, logits[None])
    return True


def _trained(
    race: Race, candidate: Candidate, seed: int, fold: int, parts: Mapping[float, Board]
) -> bool:
    """Train a candidate on each part outside a fold; returns whether there was time."""
    data = race.runs.root / "data" / f"fold-{fold}"
    jobs, names = {}, {}
    for share in parts:
        name = f"share-{share:.0%}".rstrip("%")
        race.board.rows.write_part(data / f"{name}.jsonl", drawn(race.board.rows, fold, share))
        config = race.config(
            candidate,
            train=str(data / f"{name}.jsonl"),
            test=str(data / "held-out.jsonl"),
            seed=seed,
            test_predictions=True,
        )
        folder = Path("runs", candidate.name, f"seed-{seed}", f"fold-{fold}-{name}")
        jobs[share], names[folder] = Job(folder, config), f"{candidate.name} on {share:.0%}"
    missing = [job for job in jobs.values() if race.runs.state(job) != "finished"]
    if missing:
        needed = (race.seconds(candidate) or 0.0) * len(missing) / race.runs.launcher.at_once
        if needed > race.clock.left:
            return False
        if len(race.run(missing, race.clock.left, names)) < len(missing):
            return False
    for share, part in parts.items():
        race.read(candidate, seed, fold, race.runs.root / jobs[share].folder, part)
    return True


def _points(
    whole: Board, parts: Mapping[float, Board], name: str, seed: int, folds: int
) -> dict[str, Any]:
    """The points of the curve, and the gain of more labels, each with a 95% bootstrap interval."""
    rows = whole.rows
    predicted = rows.folds < folds
    # Of few groups, a sample may have none that is predicted: no row, and so no score.
    some = whole.counts[:, predicted].any(axis=1)
    points, samples = [], []
    for share, board in parts.items():
        logits = board.logits(name, seed)
        samples.append(whole.resampled(logits, predicted)[some])
        trained = [
            (drawn(rows, k, share) if share < 1 else rows.folds != k).sum() for k in range(folds)
        ]
        points.append(
            {
                "share": share,
                "rows": round(float(np.mean(trained))),
                "score": (score := whole.score(rows.truth[predicted], logits[predicted])),
                "interval": interval_of(score, samples[-1], whole.spread(predicted, share)),
            }
        )
    gains = gain_of(
        np.array([point["rows"] for point in points]), np.stack(samples, axis=1), len(rows.truth)
    )
    return {
        "candidate": name,
        "predicted": int(predicted.sum()),
        "folds": folds,
        "points": points,
        "more": {
            "labels": MORE,
            "gain": float(np.median(gains)),
            "interval": np.quantile(gains, (0.025, 0.975)).tolist(),
        },
    }


def gain_of(rows: NDArray[np.int64], scores: NDArray[np.float64], now: int) -> NDArray[np.float64]:
    """The gain in score from more labels, by a line in the logarithm of the rows: ``[R]``.

    The line is fitted to each bootstrap sample. Alone, it is too sure: which rows happen to be
    labelled matters as much as how many. So today's model and the one with more labels are each
    given as much scatter around the line as the points have: Student's t, as few points show it.

    Args:
        rows: training rows of the points, ``[P]``.
        scores: bootstrapped scores of the points, ``[R, P]``.
        now: the number of rows there are.
    """
    x = np.log(rows)
    x = x - x.mean()
    slopes = scores @ x / (x @ x)
    off = scores - scores.mean(axis=1, keepdims=True) - slopes[:, None] * x
    scatter = np.sqrt((off**2).sum(axis=1) / (len(x) - 2))
    two = np.sqrt(2) * np.random.default_rng(0).standard_t(len(x) - 2, size=len(scores))
    gains: NDArray[np.float64] = slopes * np.log((now + MORE) / now) + two * scatter
    last = scores[:, -1]
    return gains.clip(-last, 1 - last)  # a score is between 0 and 1
