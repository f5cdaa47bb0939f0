"""What fails after a signal, and a compiler that is missing."""

import signal
from pathlib import Path

import pytest
import torch

from aang_core import ConfigError, PluginError
from tests.support.training import Interrupted, Interruption, check_compiler


def test_what_fails_after_a_signal_was_stopped_by_it() -> None:
    """Such as a compilation, whose processes have got the signal too."""
    asked = Interruption()
    with pytest.raises(PluginError), asked.deferred():
        raise PluginError("output x failed")
    asked.number = signal.SIGTERM
    with pytest.raises(Interrupted, match=r"^stopped by SIGTERM$") as stopped, asked.deferred():
        raise PluginError("output x failed: the compiler was ended")
    assert stopped.value.status == 128 + signal.SIGTERM


def test_a_missing_compiler_is_told_before_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from torch._inductor import config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(config.cpp, "cxx", ("no-such-compiler",))
    monkeypatch.setattr(config, "compile_threads", 1)
    torch._dynamo.reset()
    with pytest.raises(ConfigError, match=r"^--compile: torch cannot compile on this machine") as e:
        check_compiler(torch.device("cpu"))
    torch._dynamo.reset()
    assert "\n" not in str(e.value)
    assert "leave --compile out" in str(e.value)
