"""Noise on the embeddings of an objective's rows: random, or against the objective."""

from pathlib import Path
from typing import Any

import pytest
import torch
from aang_plugin_bert.mask import Mask
from torch import Generator, Tensor

from aang_core import Batch, EmbeddedRows, PluginError, load_plugins
from tests.core.encoders import ARCHITECTURES, VOCABULARY
from tests.core.engine_steps import tiny_model
from tests.support.runs import assemble, prepare_sources, resolve_config
from tests.training.trainers import assert_goes_on, build

NOISE = "task/noising-embeds/bidirectional"
AGAINST = {"noising-embeds": {"adversarial": True, "scale": 0.2}}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_noise_is_added_to_word_embeddings(architecture: str) -> None:
    """Noise of zero changes nothing, nor do rows without noise in the same pass."""
    body = tiny_model(architecture, True).body.eval()
    ids = torch.randint(3, VOCABULARY, (2, 7), generator=Generator().manual_seed(0))
    real = torch.arange(7) < torch.tensor([[7], [5]])
    clean = body(ids, real)
    noise = torch.zeros((*ids.shape, body.embeddings(ids).shape[2]), dtype=clean.dtype)
    torch.testing.assert_close(body(ids, real, noise)[real], clean[real], rtol=1e-9, atol=1e-9)
    noise[0, 2, ::2] = 1.0  # not the same everywhere, which layer norm would take out
    noised = body(ids, real, noise)
    assert not torch.allclose(noised[0], clean[0])
    torch.testing.assert_close(noised[1][real[1]], clean[1][real[1]], rtol=1e-9, atol=1e-9)


def test_rows_with_and_without_noise_share_a_pass() -> None:
    body = tiny_model("bert", True).body.eval()
    ids = torch.randint(3, VOCABULARY, (2, 7), generator=Generator().manual_seed(0))
    noise = torch.randn(1, 4, body.embeddings(ids).shape[2]).double()
    short = {"input_ids": ids[:1, :4], "attention_mask": torch.ones(1, 4, dtype=torch.bool)}
    whole = {"input_ids": ids, "attention_mask": torch.ones(2, 7, dtype=torch.bool)}
    parts = [{**short, "noise": noise}, whole]
    together = body(**body.pack(parts))
    for features, part in zip((together[:1], together[1:]), parts, strict=True):
        alone = body(**part)
        torch.testing.assert_close(body.unpack(features, part), alone, rtol=1e-9, atol=1e-9)


def prepared(options: dict[str, Any], space: str, **more: Any) -> tuple[Any, Batch, Batch]:
    """The only objective of a space, and its first rows without noise and with it."""
    # The demo's encoder: one with random weights hardly looks at its input.
    config = resolve_config({}, {**options, "model": None, "space": space, **more})
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, load_plugins().registry))
    (task,) = assembly.auxiliaries
    assembly.model.body.eval()
    task.head.eval()
    clean = task.batch(torch.arange(8), Generator().manual_seed(1))
    return task, clean, task.prepared(clean, Generator().manual_seed(2))


def loss(task: Any, batch: Batch) -> float:
    with torch.no_grad():
        return float(task.losses(task.head, task.body(**batch.inputs), batch.targets).mean())


@pytest.mark.parametrize("output", ["end-task", "denoise"])
def test_noise_against_the_objective_raises_its_loss(options: dict[str, Any], output: str) -> None:
    """It is as long as random noise, in every row, and on ordinary tokens alone."""
    small = {"noising-embeds": {"scale": 0.1}}
    against = {"noising-embeds": {"scale": 0.1, "adversarial": True}}
    task, clean, random = prepared(options, f"{NOISE}/{output}", set=small)
    other, _, turned = prepared(options, f"{NOISE}/{output}", set=against)
    lengths = [batch.inputs["noise"].norm(dim=(1, 2)) for batch in (random, turned)]
    torch.testing.assert_close(*lengths)
    assert bool(lengths[0].all())
    for batch in (random, turned):
        assert not bool(batch.inputs["noise"][~batch.origin.ordinary].any())
    with torch.no_grad():
        words = task.body.embeddings(clean.inputs["input_ids"])[clean.origin.ordinary]
    found = random.inputs["noise"][clean.origin.ordinary]
    assert float(found.std()) == pytest.approx(0.1 * float(words.square().mean().sqrt()), rel=0.1)
    at_all, by_chance, against_it = loss(task, clean), loss(task, random), loss(other, turned)
    assert against_it - at_all > 3 * abs(by_chance - at_all)


def test_a_view_that_is_shown_clean_has_no_noise(options: dict[str, Any]) -> None:
    """With ``consistency``, noise against the objective is that of virtual adversarial training."""
    space = f"{NOISE}/consistency"
    chosen = {"consistency": {"threshold": 0}}
    task, clean, turned = prepared(options, space, set=AGAINST | chosen)
    _, _, random = prepared(options, space, set={"noising-embeds": {"scale": 0.2}} | chosen)
    noise = turned.inputs["noise"]
    assert noise.shape[0] == 16
    assert not bool(noise[:8].any())
    assert bool(noise[8:].any())
    at_all, by_chance, against_it = (loss(task, batch) for batch in (clean, random, turned))
    assert against_it - at_all > 2 * (by_chance - at_all) > 0


@pytest.mark.parametrize(
    "more",
    [
        {"gradients": "stream"},
        {"gradients": "packed"},
        {"micro_batch_size": 3, "save_memory": True},
        {"precision": "bf16", "draws_per_step": 2},
    ],
)
def test_training_goes_on_bit_by_bit(
    options: dict[str, Any], tmp_path: Path, more: dict[str, Any]
) -> None:
    given = {**options, "space": f"{tmp_path}/space.yaml", "set": AGAINST, **more}
    (tmp_path / "space.yaml").write_text(
        "name: noise\ndata: [task]\ntransform: [noising-embeds, mask]\n"
        "representation: [bidirectional]\noutput: [denoise, end-task]\n"
    )
    assembly = assert_goes_on(given, tmp_path / "checkpoint", rounds=4, at=2)
    shared = [task.shares for task in assembly.auxiliaries]
    assert shared == [None, None, *["task/mask/bidirectional/corrupted"] * 2]


def test_both_engines_measure_the_same(options: dict[str, Any]) -> None:
    given = {**options, "space": f"{NOISE}/denoise", "dropout": 0.0, "dev_head": "own-rows"}
    # Rows of one length, which both put into one batch.
    given |= {"precision": "fp32", "max_length": 8}
    signals = []
    for engine in ("stream", "packed"):
        _, _, trainer, _, _ = build(given, gradients=engine, set=AGAINST)
        trainer.weighter.round(trainer.bench)
        assert trainer.bench.last is not None
        assert trainer.bench.last.signals is not None
        signals.append(trainer.bench.last.signals.cosine)
    assert signals[0] == pytest.approx(signals[1], rel=1e-3)


class Misshapen(Mask):
    """Forgets the embeddings' size."""

    def noise(self, rows: EmbeddedRows, generator: Generator) -> Tensor:
        return torch.zeros(rows.noisy.shape)


def test_broken_noise_is_found_before_training(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aang_plugin_bert.mask.Mask", Misshapen)
    with pytest.raises(PluginError, match=r"mask.*noise: expected a tensor \[B, T, E\]"):
        prepared(options, "task/mask/bidirectional/denoise")
