"""What a program shares with the trainings that it starts, such as generators and switches."""

import io
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from huggingface_hub.utils.tqdm import disable_progress_bars, progress_bar_states
from torch._functorch import config as functorch
from transformers.utils import logging as transformers_logging

LIBRARIES = ("transformers", "datasets", "huggingface_hub", "torch", "aang_core", "py.warnings")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def world() -> dict[str, Any]:
    """The present state of everything that belongs to the caller, by name."""
    backends, matmul = torch.backends, torch.backends.cuda.matmul
    loggers = [logging.getLogger(name) for name in (None, *LIBRARIES)]
    return {
        "torch's generator": torch.get_rng_state().tolist(),
        "numpy's generator": repr(np.random.get_state()),
        "Python's generator": random.getstate(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "deterministic algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        ),
        "cudnn": [
            getattr(backends.cudnn, name)
            for name in ("deterministic", "benchmark", "enabled", "allow_tf32")
        ],
        "matrix products": (
            torch.get_float32_matmul_precision(),
            matmul.allow_tf32,
            matmul.allow_fp16_reduced_precision_reduction,
            matmul.allow_bf16_reduced_precision_reduction,
        ),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomalies": torch.is_anomaly_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()),
        "compiler": functorch.donated_buffer,
        "initialisers": (torch.nn.init.normal_, torch.nn.init.kaiming_uniform_),
        "environment": dict(os.environ),
        "working directory": os.getcwd(),  # noqa: PTH109
        "import path": list(sys.path),
        "standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "hooks": (sys.excepthook, threading.excepthook, sys.displayhook),
        "signals": [signal.getsignal(number) for number in SIGNALS],
        "warnings": (list(warnings.filters), warnings.showwarning),
        "logging": [
            (log.level, list(log.handlers), log.propagate, log.disabled, list(log.filters))
            for log in loggers
        ],
        "all of logging": logging.root.manager.disable,
        "bars of datasets": datasets.are_progress_bars_disabled(),
        "bars of transformers": transformers_logging.is_progress_bar_enabled(),
        "bars of the hub": dict(progress_bar_states),
        "numpy's errors": np.geterr(),
    }


def changed(before: dict[str, Any]) -> dict[str, Any]:
    """What is no longer as it was, by name."""
    now = world()
    return {name: (before[name], now[name]) for name in before if before[name] != now[name]}


@contextmanager
def unusual_world() -> Iterator[None]:
    """A caller who has set what can be set to other values than the libraries' own."""
    log, handlers = logging.getLogger("transformers"), {}
    root, stream = logging.getLogger(), logging.StreamHandler(io.StringIO())
    level, root_level = log.level, root.level
    states, generator = dict(progress_bar_states), torch.get_rng_state()
    hidden = datasets.are_progress_bars_disabled()
    datasets.enable_progress_bars()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "stdout", io.StringIO())
        warnings.filterwarnings("ignore", "of the caller")
        root.addHandler(stream)
        root.setLevel(logging.DEBUG)
        log.setLevel(logging.NOTSET)
        for number in SIGNALS:
            handlers[number] = signal.signal(number, lambda number, frame: None)
        disable_progress_bars("peft")
        disable_progress_bars("huggingface_hub.upload_large_folder")
        transformers_logging.enable_progress_bar()
        disable_progress_bars()
        torch.manual_seed(11)
        torch.rand(3)
        np.random.seed(12)
        random.seed(13)
        torch.set_float32_matmul_precision("high")
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)
            torch.set_float32_matmul_precision("highest")
            torch.set_rng_state(generator)
            if hidden:
                datasets.disable_progress_bars()
            progress_bar_states.clear()
            progress_bar_states.update(states)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            log.setLevel(level)
            root.setLevel(root_level)
            root.removeHandler(stream)
