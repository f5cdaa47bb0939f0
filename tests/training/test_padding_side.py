"""Padding is on the right, whatever the tokenizer says; texts are cut on the side that it says."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, XLNetConfig, XLNetForSequenceClassification

from aang_core import Example, ModelError
from tests.support.data import tokenize
from tests.support.model import load_classifier, load_text_model, load_tokenizer
from tests.support.runs import Predictor, Text


def with_sides(encoder: Path, to: Path, **sides: str) -> str:
    """A copy of the encoder whose tokenizer names other sides."""
    path = shutil.copytree(encoder, to) / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | sides))
    return str(to)


def test_a_tokenizer_that_pads_on_the_left_pads_on_the_right(encoder: Path, tmp_path: Path) -> None:
    """A text gets the same prediction alone and beside a longer one, in transformers too."""
    source = with_sides(encoder, tmp_path / "e", padding_side="left", truncation_side="left")
    tokenizer = load_tokenizer(source)
    load_text_model(source, tokenizer, ["a", "b"]).save(tmp_path / "saved")
    texts: list[Text] = [("one text", None), ("another text that is longer " * 9, None)]
    predictor = Predictor.load(tmp_path / "saved", torch.device("cpu"))
    alone = [p.probabilities for text in texts for p in predictor.predict([text])]
    together = [p.probabilities for p in predictor.predict(texts)]
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    saved = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert (saved.padding_side, saved.truncation_side) == ("right", "left")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("pair", [None, "and a second text that is much longer " * 3])
def test_training_and_prediction_cut_the_same_tokens(
    encoder: Path, tmp_path: Path, side: str, pair: str | None
) -> None:
    """On the side that the tokenizer names."""
    source = with_sides(encoder, tmp_path / "e", truncation_side=side)
    tokenizer = load_tokenizer(source)
    load_text_model(source, tokenizer, ["a", "b"]).save(tmp_path / "saved")
    text = "the first words of a text, and its last ones"
    trained = tokenize([Example(text, pair)], tokenizer, max_length=9, cache=None)
    predictor = replace(Predictor.load(tmp_path / "saved", torch.device("cpu")), max_length=9)
    seen: list[torch.Tensor] = []
    predictor.model.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(inputs["input_ids"]), with_kwargs=True
    )
    list(predictor.predict([(text, pair)]))
    assert torch.equal(seen[0], trained.rows(torch.tensor([0])).ids)


def test_a_classifier_that_reads_the_last_position_is_refused(
    encoder: Path, tmp_path: Path
) -> None:
    """As XLNet does: padding is there."""
    load_tokenizer(str(encoder)).save_pretrained(tmp_path)
    small = XLNetConfig(vocab_size=600, d_model=8, n_layer=1, n_head=2, d_inner=8, num_labels=2)
    XLNetForSequenceClassification(small).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="reads the last position of a row"):
        load_classifier(str(tmp_path))
