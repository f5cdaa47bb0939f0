"""The option ``rate`` of every transform in this plug-in: the share of tokens to select."""

from aang_core import number_option


def selection_rate(rate: float) -> float:
    """Check that ``rate`` is a probability above zero, and return it.

    Raises:
        ConfigError: ``rate`` is not a number in (0, 1].
    """
    return number_option("option rate of a transform", rate, low=0, high=1, above_low=True)
