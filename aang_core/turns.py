"""Trainings of one process take turns, and leave the process as they found it.

Dropout and new weights come from torch's generator, which all threads share, and transformers
replaces torch's initialisers for all threads while it loads a model. Two trainings at the same time
would change each other's numbers.
"""

import logging
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 1.0
"""A thread that waits longer says why."""
_LOOK_SECONDS = 0.01

_training = threading.RLock()
_globals = threading.Condition()
_loading: list[object] = []
"""One entry for each thread that waits to load something."""

_log = logging.getLogger(__name__)


@contextmanager
def training_turn() -> Iterator[None]:
    """Train in the block while no other thread trains, then restore what all threads share.

    A training may start another one in its own thread.
    """
    with (
        _held(_training, "another training runs in this process; this one waits until it ends"),
        _held(_globals, "another thread loads a model or plug-ins; the training waits until then"),
        generators_kept(),
        _compiler_kept(),
    ):
        yield


@contextmanager
def loading_turn() -> Iterator[None]:
    """Load models or plug-ins in the block while no other thread does, and no training computes.

    A training lets other threads load between two of its rounds.
    """
    entry = object()
    _loading.append(entry)
    try:
        with _held(_globals, "a training runs in another thread; loading waits for its next round"):
            _loading.remove(entry)
            yield
    finally:
        if entry in _loading:
            _loading.remove(entry)


def let_others_load() -> None:
    """Let threads that wait to load something do so; a training calls this between two rounds."""
    if not _loading:
        return
    with _globals:
        while _loading:
            # Waiting releases the lock, however often this thread holds it.
            _globals.wait(_LOOK_SECONDS)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the generators of Python, numpy and torch after the block."""
    import numpy as np
    import torch

    ours, of_numpy, of_torch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    seed = torch.initial_seed()
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
        if on_gpus is None:
            # Asking for their states would have started CUDA, even for a training on the CPU. They
            # start with the seed of torch's generator.
            torch.cuda.manual_seed_all(seed)
        else:
            torch.cuda.set_rng_state_all(on_gpus)


@contextmanager
def _compiler_kept() -> Iterator[None]:
    """Restore the switch that a training with ``--compile`` sets."""
    from torch._functorch import config

    before = config.donated_buffer
    try:
        yield
    finally:
        config.donated_buffer = before


@contextmanager
def _held(lock: "threading.RLock | threading.Condition", reason: str) -> Iterator[None]:
    if not lock.acquire(timeout=_PATIENCE_SECONDS):
        _log.warning(reason)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
