"""Text sampled from language models: small real ones, causal and masked, and the default."""

import os
from pathlib import Path

import pytest
import torch
from aang_plugin_electra.neural_lm import NeuralLm
from aang_plugin_electra.sampling import train_small_lm
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from aang_core import ConfigError, DataContext, DataError, Example, ModelError

torch.set_num_threads(1)

SENTENCE = "the a small large parser reads writes every some file line of and then stops"
WORDS = SENTENCE.split()
TEXTS = [" ".join(WORDS[(i * k) % len(WORDS)] for k in range(3, 15)) + "." for i in range(1, 21)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AANG_CACHE", str(tmp_path / "cache"))


def context(seed: int = 0) -> DataContext:
    return DataContext(train=[Example(text, label="x") for text in TEXTS], seed=seed)


def texts(data: NeuralLm, seed: int = 0) -> list[str]:
    return [example.text for example in data.examples(context(seed))]


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("causal")
    torch.manual_seed(0)
    model, tokenizer = train_small_lm(TEXTS, 16, steps=60)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory, causal: Path) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(causal)
    tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def test_the_default_trains_a_small_model_on_the_tasks_text() -> None:
    """As many texts as there are examples, in words of the task's, and not merely its texts."""
    sampled = texts(NeuralLm(train_steps=60))
    assert len(sampled) == len(TEXTS)
    words = [word.strip(".") for text in sampled for word in text.split()]
    assert sum(word in WORDS for word in words) > 0.8 * len(words)
    assert set(sampled) - set(TEXTS)


def test_the_same_seed_gives_the_same_texts(
    causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = NeuralLm(model=str(causal), texts=5)
    before = torch.random.get_rng_state()
    first = texts(data)
    assert torch.equal(before, torch.random.get_rng_state())
    monkeypatch.setenv("AANG_CACHE", str(tmp_path / "another"))
    assert texts(data) == first
    assert texts(data, seed=1) != first


def test_sampled_once_and_kept(causal: Path, tmp_path: Path) -> None:
    """The second time the model is not even loaded: its folder may be unreadable."""
    data = NeuralLm(model=str(causal), texts=3)
    first = texts(data)
    (cached,) = (tmp_path / "cache" / "neural-lm").iterdir()
    cached.write_text(cached.read_text().replace(first[0][:4], "kept"), encoding="utf-8")
    assert texts(data)[0].startswith("kept")


def test_a_model_that_was_trained_on_is_another_one(causal: Path) -> None:
    data = NeuralLm(model=str(causal), texts=3)
    texts(data)
    weights = causal / "model.safetensors"
    os.utime(weights, ns=(1, 1))
    texts(data)
    assert len(list((Path(os.environ["AANG_CACHE"]) / "neural-lm").iterdir())) == 2


def test_a_masked_model_rewrites_the_tasks_texts(masked: Path) -> None:
    sampled = texts(NeuralLm(model=str(masked), texts=8, max_tokens=12))
    assert len(sampled) == 8
    assert not set(sampled) & set(TEXTS)
    assert not any("<|" in text for text in sampled)


def test_as_many_texts_as_asked_for(causal: Path) -> None:
    assert len(texts(NeuralLm(model=str(causal), texts=40, top_k=0, temperature=1.5))) == 40


def test_a_model_that_lacks_a_weight_does_not_write(masked: Path, tmp_path: Path) -> None:
    weights = load_file(masked / "model.safetensors")
    del weights["bert.encoder.layer.0.output.dense.weight"]
    save_file(weights, masked / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 of its weights .*layer\.0\.output\.dense\.weight"):
        texts(NeuralLm(model=str(masked)))
    assert not (tmp_path / "cache" / "neural-lm").exists()


def test_models_that_cannot_generate(tmp_path: Path) -> None:
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    BertModel(config).save_pretrained(tmp_path / "encoder")
    small = T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(small).save_pretrained(tmp_path / "pairs")
    for name, kind in (("encoder", "BertModel"), ("pairs", "T5ForConditionalGeneration")):
        with pytest.raises(ModelError, match=f"cannot generate text: it is {kind}"):
            texts(NeuralLm(model=str(tmp_path / name)))
    with pytest.raises(ModelError, match="cannot be loaded"):
        texts(NeuralLm(model=str(tmp_path / "none")))
    assert not (tmp_path / "cache" / "neural-lm").exists()


@pytest.mark.parametrize(
    "options", [{"texts": 0}, {"max_tokens": 1}, {"temperature": 0}, {"top_k": -1}]
)
def test_options_out_of_range(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        NeuralLm(**options)


def test_no_text_to_begin_with() -> None:
    with pytest.raises(DataError, match="end task's texts"):
        NeuralLm().examples(DataContext(train=()))
