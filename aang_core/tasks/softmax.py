"""Logits by name to weights by name."""

import math
from collections.abc import Mapping


def softmax(logits: Mapping[str, float]) -> dict[str, float]:
    """Turn logits into weights: the exponential of each over the sum of all.

    The highest logit is subtracted first, so that no exponential overflows.

    Examples:
        >>> from aang_core import softmax
        >>> softmax({"end-task": 0.0, "denoise": 0.0})
        {'end-task': 0.5, 'denoise': 0.5}
    """
    highest = max(logits.values(), default=0.0)
    powers = {name: math.exp(logit - highest) for name, logit in logits.items()}
    total = math.fsum(powers.values())
    return {name: power / total for name, power in powers.items()}
