"""Significance tests of a method against the baseline."""

from collections.abc import Sequence

RESAMPLES = 10_000
"""Number of permutations (TARTAN, appendix A.2); if fewer exist, each is used once."""

_ROUNDING = 1e-12
"""Differences below this, relative to the scores, are equal. Scores are counts over a number of
rows, so that many differences are equal but for rounding."""


def permutation_p(left: Sequence[float], right: Sequence[float], seed: int = 0) -> float | None:
    """Two-sided p value of a paired permutation test of the mean difference.

    Args:
        left: scores of one method, by seed.
        right: scores of the other, by seed.
        seed: seed of the permutations.

    Returns:
        The p value; None for fewer than two pairs.
    """
    if len(left) < 2:
        return None
    from numpy import mean
    from scipy.stats import permutation_test

    # Exchanging the scores of a pair changes the sign of its difference.
    differences = _differences(left, right)
    found = permutation_test(
        (differences,),
        mean,
        permutation_type="samples",
        n_resamples=RESAMPLES,
        vectorized=True,
        rng=seed,
    )
    # SciPy's own p value counts means that differ only by rounding as different.
    least = abs(found.statistic) - _rounding(left, right)
    extreme = int((found.null_distribution >= least).sum())
    drawn = 2 ** len(differences) > RESAMPLES  # the observed signs count as one more permutation
    share = (extreme + drawn) / (len(found.null_distribution) + drawn)
    return float(min(1.0, 2 * share))


def paired_t_p(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Two-sided p value of the paired t-test (AANG, section 7).

    Args:
        left: scores of one method, by seed.
        right: scores of the other, by seed.

    Returns:
        The p value; None for fewer than two pairs or if all differences are equal.
    """
    differences = _differences(left, right)
    if len(left) < 2 or max(differences) - min(differences) <= _rounding(left, right):
        return None
    from scipy.stats import ttest_rel

    return float(ttest_rel(list(left), list(right)).pvalue)


def _differences(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(left, right, strict=True)]


def _rounding(left: Sequence[float], right: Sequence[float]) -> float:
    return _ROUNDING * max(map(abs, (*left, *right)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct p values for multiple tests (Holm, 1979); None stays None and does not count."""
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[i] = highest
    return corrected
