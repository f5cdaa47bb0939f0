"""Expectations of states and randomness, and the hypothesis settings."""

import json
import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, settings

from aang_core.contracts import ContractError, expect

# Derandomized: a check that passes today passes tomorrow. Neither a deadline nor a limit to the
# time that inputs take to make, since both fail honest primitives on a busy machine. No database,
# so that hypothesis leaves no folder in a plug-in's repository. No explain phase: it takes most of
# the time of a failing check, and the messages say what is wrong. One failure at a time: mending
# the first often mends the others.
PROPERTY = settings(
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow,),
    derandomize=True,
    database=None,
    max_examples=50,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
)


def expect_json(value: Any, what: str) -> str:
    """Expect values that JSON keeps as they are, and return the JSON."""
    try:
        # Keys keep their order, as in a checkpoint: the order of a sum changes its last digit.
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what}: expected JSON values, got {value!r} ({error})") from error
    expect(json.loads(text) == value, what, "the same after JSON", json.loads(text))
    return text


@contextmanager
def only_generator_draws(
    what: str, source: str = "the generator that is passed in", *, dropout: bool = False
) -> Iterator[None]:
    """Expect that the block uses no global random state.

    Args:
        what: what the block runs, for the message.
        source: where draws may come from, for the message.
        dropout: whether draws may come from torch's global generator, too, as dropout's do. A
            checkpoint holds its state, unlike Python's and numpy's.
    """
    before = _global_states()
    yield
    after = _global_states()
    used = [name for name, state in before.items() if after[name] != state]
    expect(
        set(used) <= ({"torch"} if dropout else set()),
        f"randomness of {what}",
        f"draws from {source} alone",
        f"a draw from the global state of {', '.join(used)}",
    )


def _global_states() -> dict[str, bytes]:
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "random": pickle.dumps(random.getstate()),
        "numpy": pickle.dumps(np.random.get_state()),
    }
