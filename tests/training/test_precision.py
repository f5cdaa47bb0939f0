"""``--precision auto``: settled by what the device has and never by a clock, and recorded."""

import contextlib
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from aang_core import ConfigError
from tests.support.training import (
    Processes,
    check_precision,
    in_effect,
    settle_precision,
)
from tests.training.conftest import Aang

CPU = torch.device("cpu")


def _has(monkeypatch: pytest.MonkeyPatch, *instructions: str) -> None:
    """Let this CPU have those instructions and no others."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(instructions, True))


@pytest.mark.parametrize("width", [128, 192, 768])
@pytest.mark.parametrize("instructions", ["avx512_bf16", "amx_bf16", "bf16"])
def test_auto_is_bf16_where_the_cpu_has_instructions_for_it(
    monkeypatch: pytest.MonkeyPatch, instructions: str, width: int
) -> None:
    _has(monkeypatch, "avx2", instructions)
    said = f"--precision auto: bf16, since this CPU has instructions for bf16 ({instructions})"
    assert settle_precision("auto", CPU, width) == ("bf16", said)


def test_auto_is_fp32_on_other_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast they are by the clock, which differs from one call to the next."""
    said = "--precision auto: fp32, since this CPU has no instructions for bf16 that torch uses"
    _has(monkeypatch, "avx2", "avx512_f", "avx512_vnni")
    assert settle_precision("auto", CPU, 768) == ("fp32", said)
    _has(monkeypatch, "bf16")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert settle_precision("auto", CPU, 768) == ("fp32", said)


def test_a_narrow_encoder_stays_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    _has(monkeypatch, "avx512_bf16")
    chosen, reason = settle_precision("auto", CPU, 64)
    assert chosen == "fp32"
    assert reason is not None
    assert "64 wide" in reason


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("fp32", [torch.float32]), ("bf16", [torch.bfloat16, torch.float32])],
)
def test_training_scores_in_its_own_precision_and_ends_in_fp32(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    choice: str,
    expected: list[torch.dtype],
) -> None:
    """The result is that of the saved model, which others load in fp32."""
    types: list[torch.dtype] = []

    def note(module: nn.Module, inputs: object, output: object) -> None:
        if torch.is_inference_mode_enabled() and isinstance(module, nn.Linear):
            assert isinstance(output, torch.Tensor)
            types.append(output.dtype)

    hook = register_module_forward_hook(note)
    try:
        run = tmp_path / "run"
        done = aang("train", *train_options, "--precision", choice, "--out", run)
    finally:
        hook.remove()
    assert done.status == 0, done.err
    assert [dtype for dtype, _ in groupby(types)] == expected
    scores = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((run / "result.json").read_text())
    best = next(s for s in scores if s["step"] == result["best_step"])
    close = 0.0 if choice == "fp32" else 0.1
    assert result["metric"]["dev"] == pytest.approx(best["dev"]["macro-f1"], abs=close)


@pytest.mark.parametrize("choice", ["fp32", "fp16"])
def test_what_was_asked_for_stays(choice: Any) -> None:
    assert settle_precision(choice, CPU, 256) == (choice, None)
    assert in_effect(choice) == choice


def test_slow_bf16_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice stays the user's."""
    _has(monkeypatch)
    chosen, reason = settle_precision("bf16", CPU, 256)
    assert chosen == "bf16"
    assert reason is not None
    assert "may be slower than fp32: this CPU has no instructions" in reason


def test_fast_bf16_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    _has(monkeypatch, "avx512_bf16")
    assert settle_precision("bf16", CPU, 256) == ("bf16", None)


class _SecondOfTwo(Processes):
    """A process whose companion gains nothing by bf16."""

    def __init__(self) -> None:
        super().__init__(rank=1, size=2)

    def largest(self, number: int) -> int:
        return max(number, 1)


def test_processes_take_what_all_of_them_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU without bf16 among others with it would make all of them wait."""
    _has(monkeypatch, "avx512_bf16")
    chosen, reason = settle_precision("auto", CPU, 256, _SecondOfTwo())
    assert chosen == "fp32"
    assert reason is not None
    assert "another process of this training gains nothing by bf16" in reason


def test_bf16_on_a_gpu_without_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is loaded; torch would emulate it, and say nothing."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: False)
    # A product in fp16 is tried out, on this machine's CPU in place of its GPU.
    ones, autocast = torch.ones, torch.autocast

    def on_cpu(*size: int, device: torch.device) -> Tensor:
        return ones(*size)

    monkeypatch.setattr(torch, "ones", on_cpu)
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: autocast("cpu", dtype))
    with pytest.raises(ConfigError, match=r"bf16: cuda:0 .*--precision fp32 or --precision fp16$"):
        check_precision("bf16", torch.device("cuda", 0))
    check_precision("auto", torch.device("cuda", 0))


def test_a_device_that_warns_of_bf16_and_computes_in_fp32_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """torch's autocast does so on some."""
    for dtype in (torch.bfloat16, torch.float16):
        check_precision("bf16" if dtype == torch.bfloat16 else "fp16", CPU)
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: contextlib.nullcontext())
    with pytest.raises(ConfigError, match=r"--precision fp16: cpu .*; give --precision fp32$"):
        settle_precision("fp16", CPU, 256)


def test_a_run_records_what_it_has_come_to(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """So that a run keeps it on a machine that would choose otherwise."""
    run = tmp_path / "run"
    done = aang("train", *train_options, "--space", "tapt", "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    assert "--precision auto: fp32, since an encoder that is 32 wide" in done.err
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["precision"] == "fp32"
    assert json.loads((run / "result.json").read_text(encoding="utf-8"))["precision"] == "fp32"
