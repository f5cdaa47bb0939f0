"""Significance tests of a method against the baseline."""

from collections.abc import Sequence

RESAMPLES = 10_000
"""Number of permutations (TARTAN, appendix A.2); if fewer exist, each is used once."""


def permutation_p(left: Sequence[float], right: Sequence[float], seed: int = 0) -> float | None:
    """Two-sided p value of a paired permutation test of the mean difference.

    Args:
        left: scores of one method, by seed.
        right: scores of the other, by seed.
        seed: seed of the permutations.

    Returns:
        The p value; None for less than two pairs.
    """
    if len(left) < 2:
        return None
    from numpy import mean
    from scipy.stats import permutation_test

    found = permutation_test(
        (list(left), list(right)),
        lambda a, b, axis: mean(a, axis=axis) - mean(b, axis=axis),
        permutation_type="samples",
        n_resamples=RESAMPLES,
        vectorized=True,
        rng=seed,
    )
    return float(found.pvalue)


def paired_t_p(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Two-sided p value of the paired t-test (AANG, section 7).

    Args:
        left: scores of one method, by seed.
        right: scores of the other, by seed.

    Returns:
        The p value; None for less than two pairs or if all differences are equal.
    """
    differences = [a - b for a, b in zip(left, right, strict=True)]
    if len(differences) < 2 or len(set(differences)) == 1:
        return None
    from scipy.stats import ttest_rel

    return float(ttest_rel(list(left), list(right)).pvalue)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct p values for multiple tests (Holm, 1979); None stays None and does not count."""
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[i] = highest
    return corrected
