"""The board, ensembles and calibration, on made-up predictions."""

import numpy as np
import pytest
from aang.task_types.single_label import SingleLabel
from aang_plugin_best.board import Board, Logits
from aang_plugin_best.rows import Rows
from aang_plugin_best.together import (
    calibration_error,
    ensemble,
    probabilities_of,
    temperature_of,
)

from aang_core import Example

N, C = 300, 3


@pytest.fixture
def board() -> Board:
    """Three hundred rows of three classes in five folds."""
    truth = np.arange(N) % C
    examples = tuple(Example(f"text {i}", label="abc"[k]) for i, k in enumerate(truth))
    rows = Rows(
        examples, ("",) * N, np.arange(N), np.arange(N) % 5, SingleLabel(("a", "b", "c")), 5
    )
    return Board(rows, "accuracy")


def logits(board: Board, right: float, seed: int, scale: float = 3.0) -> Logits:
    """Logits that are right on a share of the rows."""
    generator = np.random.default_rng(seed)
    chosen = np.where(generator.random(N) < right, board.rows.truth, (board.rows.truth + 1) % C)
    found = generator.normal(size=(N, C))
    found[np.arange(N), chosen] += scale
    return found.astype(np.float32)


def test_a_row_is_predicted_after_the_steps_that_other_folds_like(board: Board) -> None:
    """A training that is best late everywhere but in one fold is not cut short for that fold."""
    early, late = logits(board, 0.5, 0, 9.0), logits(board, 0.9, 1, 9.0)
    odd = board.rows.folds == 2
    early[odd], late[odd] = logits(board, 1.0, 2, 9.0)[odd], logits(board, 0.0, 3, 9.0)[odd]
    for fold in range(5):
        rows = board.rows.folds == fold
        board.add("x", 0, (10, 20), fold, np.stack([early[rows], late[rows]]))
    assert np.array_equal(board.logits("x", 0), late)
    assert board.liked_steps("x") == 20


def test_the_standing_counts_what_all_have_predicted(board: Board) -> None:
    board.add("good", 0, (0,), None, logits(board, 0.9, 0)[None])
    poor = logits(board, 0.4, 1)
    for fold in (0, 1):
        board.add("poor", 0, (0,), fold, poor[board.rows.folds == fold][None])
    first, second = board.standing(["poor", "good"])
    assert (first.name, first.rows, second.rows) == ("good", 120, 120)
    assert first.chance > 0.99 > 0.01 > second.chance
    low, high = first.interval
    assert low < first.score < high
    assert board.complete("poor") == []
    assert first.ahead_of(second) > 0.99
    # Two folds of five: models that share three quarters of their rows.
    rows = board.predicted(["poor"])
    assert board.spread(rows) == pytest.approx(1.5**0.5)
    # A quarter of the rows varies more from draw to draw.
    assert board.spread(rows, 0.25) == pytest.approx(3**0.5)


def test_scores_lie_further_apart_than_their_rows_say(board: Board) -> None:
    board.add("one", 0, (0,), None, logits(board, 0.72, 0)[None])
    board.add("other", 0, (0,), None, logits(board, 0.66, 1)[None])
    first, second = board.standing(["one", "other"])
    low, high = np.quantile(first.samples, (0.025, 0.975))
    found = np.array(first.interval) - first.score
    assert found == pytest.approx(1.5 * (np.array([low, high]) - first.score))
    assert 0.5 < first.better_than(second) < first.ahead_of(second) < 1


def test_equal_candidates_are_both_the_best(board: Board) -> None:
    same = logits(board, 0.7, 0)[None]
    board.add("one", 0, (0,), None, same)
    board.add("other", 0, (0,), None, same)
    standing = board.standing(["one", "other"])
    assert [of.chance for of in standing] == [1.0, 1.0]
    assert standing[0].better_than(standing[1]) == 0.5


def test_groups_are_drawn_whole(board: Board) -> None:
    board.rows.groups[:] = np.arange(N) // 10
    assert (board.counts.reshape(-1, N // 10, 10) == board.counts[:, ::10][..., None]).all()
    assert board.counts.sum(axis=1).mean() == pytest.approx(N, rel=0.05)


def test_a_sample_without_a_predicted_group_has_no_score(board: Board) -> None:
    """Of five groups, one sample in three has none of the one group that is predicted."""
    board.rows.groups[:] = board.rows.folds
    found = logits(board, 0.9, 0)[board.rows.folds == 0]
    board.add("good", 0, (0,), 0, found[None])
    (only,) = board.standing(["good"])
    assert only.interval[0] > 0.7
    assert 0.6 < len(only.samples) / len(board.counts) < 0.7


def test_two_candidates_are_compared_on_equal_terms(board: Board) -> None:
    """Where one has a single fold, neither has folds that could choose its steps."""
    worse, better = logits(board, 0.6, 0), logits(board, 0.8, 1)
    for fold in range(5):
        rows = board.rows.folds == fold
        both = np.stack([better[rows], worse[rows]])
        board.add("whole", 0, (10, 20), fold, both)
        if fold == 0:
            board.add("stopped", 0, (10, 20), fold, both)
    first, second = board.shared(["whole", "stopped"]).standing(["whole", "stopped"])
    assert (first.score, first.rows) == (second.score, second.rows)


def test_models_with_other_mistakes_are_better_together(board: Board) -> None:
    for seed in range(3):
        board.add(f"m{seed}", 0, (0,), None, logits(board, 0.75, seed, 2.0)[None])
    found = ensemble(board, ["m0", "m1", "m2"])
    assert found.confirmed
    assert found.score > found.single + 0.02
    assert len(found.members) > 1


def test_noise_does_not_make_an_ensemble(board: Board) -> None:
    """Fitted to the rows, a mean with noise looks better; on rows that did not choose it, not."""
    board.add("good", 0, (0,), None, logits(board, 0.9, 0, 6.0)[None])
    for seed in range(8):
        board.add(f"noise-{seed}", 0, (0,), None, logits(board, 0.33, 10 + seed, 2.0)[None])
    assert not ensemble(board, list(board.found)).confirmed


def test_a_temperature_makes_probabilities_true(board: Board) -> None:
    """Logits of a known temperature: found again, and the calibration error falls."""
    generator = np.random.default_rng(0)
    true = generator.normal(size=(4000, C)) * 1.5
    shares = probabilities_of(true)
    truth = np.array([generator.choice(C, p=p) for p in shares])
    sharp = (4.0 * true).astype(np.float32)
    temperature = temperature_of(sharp, truth)
    assert temperature == pytest.approx(4.0, rel=0.1)
    before = calibration_error(probabilities_of(sharp), truth)
    after = calibration_error(probabilities_of(sharp, temperature), truth)
    assert before > 0.1 > 0.03 > after
    assert probabilities_of(sharp).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_rows_without_an_error_do_not_make_probabilities_certain() -> None:
    """Forty of them leave room for about one error in forty-two."""
    truth = np.arange(40) % 2
    logits = np.log(np.where(np.eye(2)[truth] > 0, 0.8, 0.2)).astype(np.float32)
    found = probabilities_of(logits, temperature_of(logits, truth))[np.arange(40), truth]
    assert found == pytest.approx(41 / 42, abs=1e-3)
