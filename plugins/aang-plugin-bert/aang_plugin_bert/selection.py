"""The option that all transforms of this plug-in share: how many tokens are selected."""

from aang_core import ConfigError


def selection_rate(rate: float) -> float:
    """``rate`` itself, a probability above zero.

    Raises:
        ConfigError: it is not a number in (0, 1].
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise ConfigError(
            f"option rate of a transform is {rate!r}; give the share of tokens to select, "
            "a number above 0 and at most 1 such as 0.15"
        )
    return rate
