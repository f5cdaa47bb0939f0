"""PCGrad's projections, as coefficients of the gradients that they started from."""

from collections.abc import Sequence

from torch import Generator, randperm

Matrix = Sequence[Sequence[float]]


def conflicts(dots: Matrix) -> float:
    """The share of pairs of gradients whose inner product is negative.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
    """
    n = len(dots)
    pairs = [dots[i][j] < 0 for i in range(n) for j in range(i)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def projected(dots: Matrix, i: int, order: Sequence[int]) -> list[float]:
    """Gradient i after its projections, as coefficients a_m with g_i^PC = Σ_m a_m g_m.

    For each j in turn, where ⟨g_i^PC, g_j⟩ < 0: g_i^PC ← g_i^PC − ⟨g_i^PC, g_j⟩ / ‖g_j‖² · g_j (Yu
    et al., section 2.3 and Algorithm 1). The inner products of the gradients suffice for this.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
        i: number of the gradient.
        order: the numbers of the others.

    Examples:
        >>> projected([[1.0, -1.0], [-1.0, 2.0]], 0, [1])
        [1.0, 0.5]
    """
    coefficients = [float(m == i) for m in range(len(dots))]
    for j in order:
        along = sum(a * dots[m][j] for m, a in enumerate(coefficients))
        if along < 0:
            coefficients[j] -= along / dots[j][j]
    return coefficients


def surgery(dots: Matrix, generator: Generator) -> list[float]:
    """The coefficients of (1/n) Σ_i g_i^PC, each projected in a random order of the others.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
        generator: source of the orders.
    """
    n = len(dots)
    total = [0.0] * n
    for i in range(n):
        order = [j for j in randperm(n, generator=generator).tolist() if j != i]
        for m, coefficient in enumerate(projected(dots, i, order)):
            total[m] += coefficient / n
    return total
