"""How the checks speak and how hypothesis runs them."""

import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from hypothesis import Phase, settings
from torch import Tensor

# Derandomized: a check that passes today passes tomorrow. A check may take long on a loaded
# machine, and a third party's repository should find no folder of hypothesis's in it. Explaining
# a failure line by line takes most of its time, and the messages say what is wrong.
PROPERTY = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    phases=(Phase.generate, Phase.shrink),
)


def expect(kept: bool, what: str, expected: Any, got: Any) -> None:
    """Go on if ``kept``.

    Raises:
        AssertionError: otherwise; it says what, expected and got.
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


@contextmanager
def only_generator_draws(what: str) -> Iterator[None]:
    """Expect that no global random state is used inside."""
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
    """Expect that none of the input tensors is changed in place inside."""
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
