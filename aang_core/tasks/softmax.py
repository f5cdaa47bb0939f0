"""Logits by name to weights by name."""

import math
from collections.abc import Mapping


def softmax(logits: Mapping[str, float]) -> dict[str, float]:
    """The exponential of each logit over the sum of all; nothing for nothing.

    The highest logit is subtracted first, so that no exponential overflows.

    >>> softmax({"end-task": 0.0, "denoise": 0.0})
    {'end-task': 0.5, 'denoise': 0.5}
    """
    highest = max(logits.values(), default=0.0)
    powers = {name: math.exp(logit - highest) for name, logit in logits.items()}
    total = math.fsum(powers.values())
    return {name: power / total for name, power in powers.items()}
