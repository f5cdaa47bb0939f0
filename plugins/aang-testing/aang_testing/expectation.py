"""The wording of failed checks, and the hypothesis settings."""

import json
import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, settings
from torch import Tensor

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


def expect(kept: bool, what: str, expected: Any, got: Any) -> None:
    """Do nothing if ``kept``.

    Raises:
        AssertionError: ``kept`` is False; it says what was expected and found.
    """
    if not kept:
        raise AssertionError(f"{what}: expected {expected}, got {got}")


def expect_tensor(
    value: Any, what: str, shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...]
) -> None:
    """Expect a tensor of this shape and one of these dtypes."""
    expected = f"a tensor of shape {list(shape)} and dtype {' or '.join(map(str, dtypes))}"
    if not isinstance(value, Tensor):
        raise AssertionError(f"{what}: expected {expected}, got {type(value).__name__}")
    got = f"shape {list(value.shape)} and dtype {value.dtype}"
    expect(tuple(value.shape) == shape and value.dtype in dtypes, what, expected, got)


def expect_json(value: Any, what: str) -> str:
    """Expect values that JSON keeps as they are, and return the JSON."""
    try:
        # In the order of its keys, as a checkpoint saves it: the order of a sum changes its last
        # digit.
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: expected JSON values, got {value!r} ({error})") from error
    expect(json.loads(text) == value, what, "the same after JSON", json.loads(text))
    return text


@contextmanager
def only_generator_draws(what: str) -> Iterator[None]:
    """Expect that the block uses no global random state."""
    before = _global_states()
    yield
    after = _global_states()
    used = [name for name, state in before.items() if after[name] != state]
    expect(
        not used,
        f"randomness of {what}",
        "draws from the generator that is passed in alone",
        f"a draw from the global state of {', '.join(used)}",
    )


@contextmanager
def unchanged(what: str, inputs: Mapping[str, Tensor]) -> Iterator[None]:
    """Expect that the block changes none of the input tensors in place."""
    before = {name: value.clone() for name, value in inputs.items()}
    yield
    for name, value in inputs.items():
        expect(
            torch.equal(before[name], value),
            f"input {name} of {what}",
            "left as it was",
            "changed in place",
        )


def _global_states() -> dict[str, bytes]:
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "random": pickle.dumps(random.getstate()),
        "numpy": pickle.dumps(np.random.get_state()),
    }
