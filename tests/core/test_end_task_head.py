"""A head in an encoder's folder: taken over if it is the end task's own, else left out whole."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedTokenizerFast,
)

from aang_core import ModelError
from tests.core.encoders import ARCHITECTURES, SHAPES, VOCABULARY
from tests.support.data import MultiLabel, Regression, SingleLabel, TaskType, tag_labels
from tests.support.model import TextModel, load_text_model

NUMBERS = Regression(mean=120.0, scale=18.0)


def tokenizer() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), model_max_length=32
    )


def save(
    folder: Path,
    auto: Any,
    names: Sequence[str] = (),
    architecture: str = "bert",
    **settings: Any,
) -> Path:
    """A tiny model of a transformers class, with random weights, as another program saves it."""
    torch.manual_seed(3)
    config = AutoConfig.for_model(
        architecture, vocab_size=VOCABULARY, pad_token_id=0, **SHAPES[architecture]
    )
    if names:
        config.id2label = dict(enumerate(names))
        config.label2id = {name: i for i, name in enumerate(names)}
    for name, value in settings.items():
        setattr(config, name, value)
    if hasattr(config, "classifier_pooling"):
        config.classifier_pooling = settings.get("classifier_pooling", "cls")
    auto.from_config(config).save_pretrained(folder)
    return folder


def load(folder: Path, task_type: TaskType) -> TextModel:
    torch.manual_seed(5)
    return load_text_model(str(folder), tokenizer(), task_type.labels, task_type=task_type)


def of_head(folder: Path) -> Mapping[str, Tensor]:
    """The weights in a folder that are not the encoder's."""
    return {
        name: value
        for name, value in load_file(folder / "model.safetensors").items()
        if "pooler" in name or not name.startswith(("bert.", "roberta."))
    }


def logits(model: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model.eval()(input_ids=torch.tensor([[4, 7, 9]])).logits
    return found


def going_on(model: TextModel) -> Any:
    return model.classifier.put_on(model.body.base)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_same_classes_in_another_order(tmp_path: Path, architecture: str) -> None:
    """Each class keeps its own row of the last layer."""
    names = ("sport", "food", "law")
    source = save(tmp_path / "c", AutoModelForSequenceClassification, names, architecture)
    before = logits(AutoModelForSequenceClassification.from_pretrained(source))
    model = load(source, SingleLabel(("food", "law", "sport")))
    torch.testing.assert_close(logits(going_on(model)), before[:, [1, 2, 0]])
    assert model.head_origin == (
        f"that of {source}, which is for the same classes, put into this task's order"
    )
    model.save(tmp_path / "saved")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert again.config.id2label == {0: "food", 1: "law", 2: "sport"}
    torch.testing.assert_close(logits(again), before[:, [1, 2, 0]])


def test_a_head_that_reads_the_mean_of_the_tokens_is_left_out(tmp_path: Path) -> None:
    """AANG's reads the first token, for which that head was not trained."""
    names = ("food", "law")
    pooled = {"architecture": "modernbert", "classifier_pooling": "mean"}
    source = save(tmp_path / "c", AutoModelForSequenceClassification, names, **pooled)
    origin = load(source, SingleLabel(names)).head_origin
    assert origin == f"new: that of {source} reads 'mean' of the tokens, and AANG the first one"


def test_nothing_of_an_earlier_head_is_in_the_saved_configuration(tmp_path: Path) -> None:
    source = save(tmp_path / "c", AutoModelForSequenceClassification, ("a", "b"), end_task="other")
    model = load_text_model(str(source), tokenizer(), ("x", "y"), head_dropout=0.5)
    model.save(tmp_path / "saved")
    saved, before = (AutoConfig.from_pretrained(tmp_path / name) for name in ("saved", "c"))
    assert not hasattr(saved, "end_task")
    assert saved.classifier_dropout == before.classifier_dropout


@pytest.mark.parametrize(
    ("task_type", "auto", "settings"),
    [
        (SingleLabel(("LABEL_0", "LABEL_1")), AutoModelForSequenceClassification, {}),
        (
            MultiLabel(("a", "b"), "|", 0.5),
            AutoModelForSequenceClassification,
            {"problem_type": "multi_label_classification", "threshold": 0.2},
        ),
        (tag_labels(("B-X", "O")), AutoModelForTokenClassification, {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_kind_of_head_is_taken_over(
    tmp_path: Path, task_type: TaskType, auto: Any, settings: Mapping[str, Any]
) -> None:
    source = save(tmp_path / "c", auto, task_type.labels, **settings)
    model = load(source, task_type)
    torch.testing.assert_close(logits(going_on(model)), logits(auto.from_pretrained(source)))
    assert model.head_origin == f"that of {source}, which is for the same classes"
    model.save(tmp_path / "saved")
    # It is chosen again, on the dev set of this training.
    assert "threshold" not in json.loads((tmp_path / "saved" / "config.json").read_text())


@pytest.mark.parametrize(
    ("auto", "names", "settings", "why"),
    [
        (AutoModelForSequenceClassification, ("a", "c"), {}, "is for other classes: 'a', 'c'"),
        (AutoModelForSequenceClassification, ("a", "b", "c"), {}, "is for other classes: 'a', 'b'"),
        (AutoModelForSequenceClassification, (), {}, "does not name its classes: 'LABEL_0'"),
        (AutoModelForTokenClassification, ("a", "b"), {}, "another kind of task, token-labels"),
        (
            AutoModelForSequenceClassification,
            ("a", "b"),
            {
                "problem_type": "multi_label_classification",
                "threshold": 0.2,
                "label_separator": ";",
                "labels_by_place": True,
            },
            "another kind of task, multi-label",
        ),
        (
            AutoModelForSequenceClassification,
            ("value",),
            {"problem_type": "regression", "label_mean": 3.0, "label_scale": 2.0},
            "another kind of task, regression",
        ),
        (AutoModelForMultipleChoice, ("a", "b"), {}, "belongs to BertForMultipleChoice"),
    ],
)
def test_another_task_has_a_fresh_head(
    tmp_path: Path, auto: Any, names: Sequence[str], settings: Mapping[str, Any], why: str
) -> None:
    """Nothing of the old head is used or saved: no weight, the pooler's neither, and no setting."""
    source = save(tmp_path / "c", auto, names, **settings)
    model = load(source, SingleLabel(("a", "b")))
    assert model.head_origin is not None
    assert model.head_origin.startswith(f"new: that of {source} ")
    assert why in model.head_origin
    model.save(tmp_path / "saved")
    fresh, old = of_head(tmp_path / "saved"), of_head(source)
    assert {"bert.pooler.dense.weight", "classifier.weight"} <= fresh.keys()
    for name, value in fresh.items():
        if value.dim() > 1 and name in old:
            assert value.shape != old[name].shape or not torch.equal(value, old[name]), name
    plain = save(tmp_path / "m", AutoModelForMaskedLM)
    load(plain, SingleLabel(("a", "b"))).save(tmp_path / "plain")
    saved, expected = (
        json.loads((tmp_path / name / "config.json").read_text()) for name in ("saved", "plain")
    )
    assert saved == expected


def test_the_layer_before_the_classes_is_left_out_too(tmp_path: Path) -> None:
    """RoBERTa's head has one hidden layer, which was trained for the other task's classes."""
    source = save(tmp_path / "c", AutoModelForSequenceClassification, ("a", "c"), "roberta")
    load(source, SingleLabel(("a", "b"))).save(tmp_path / "saved")
    fresh, old = of_head(tmp_path / "saved"), of_head(source)
    assert fresh.keys() == old.keys()
    assert not torch.equal(fresh["classifier.dense.weight"], old["classifier.dense.weight"])


def test_a_fresh_head_is_in_single_precision(tmp_path: Path) -> None:
    """As the encoder is, whose folder may hold half of it."""
    source = save(
        tmp_path / "c", AutoModelForSequenceClassification, ("a", "c"), dtype=torch.bfloat16
    )
    assert {value.dtype for value in of_head(source).values()} == {torch.bfloat16}
    model = load(source, SingleLabel(("a", "b")))
    assert {p.dtype for p in model.classifier.parameters()} == {torch.float32}


def test_an_encoder_without_a_head(tmp_path: Path) -> None:
    source = save(tmp_path / "m", AutoModelForMaskedLM)
    assert load(source, SingleLabel(("a", "b"))).head_origin is None


def test_a_head_that_is_not_whole_is_left_out(tmp_path: Path) -> None:
    """Part of its weights alone computes nothing that was trained."""
    source = save(tmp_path / "c", AutoModelForSequenceClassification, ("a", "b"))
    weights = load_file(source / "model.safetensors")
    del weights["bert.pooler.dense.weight"]
    save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
    model = load(source, SingleLabel(("a", "b")))
    assert model.head_origin is not None
    assert "lacks some of its weights" in model.head_origin


def test_a_head_whose_architecture_is_not_named(tmp_path: Path) -> None:
    source = save(tmp_path / "c", AutoModelForSequenceClassification, ("a", "b"))
    config = json.loads((source / "config.json").read_text())
    del config["architectures"]
    (source / "config.json").write_text(json.dumps(config))
    model = load(source, SingleLabel(("a", "b")))
    assert model.head_origin == f"new: that of {source} belongs to an unnamed architecture"


def finished(folder: Path, trained: Regression) -> Path:
    """The model of a finished regression."""
    model = load(save(folder / "m", AutoModelForMaskedLM), trained)
    trained.finish(model.classifier.model)
    model.save(folder / "finished")
    return folder / "finished"


def test_a_regression_goes_on_where_it_ended(tmp_path: Path) -> None:
    """The scale that was put into the last layer is taken out of it again, and put in once more."""
    source = finished(tmp_path, NUMBERS)
    numbers = logits(AutoModelForSequenceClassification.from_pretrained(source))
    model = load(source, NUMBERS)
    torch.testing.assert_close(logits(going_on(model)), (numbers - 120) / 18, atol=1e-4, rtol=0)
    NUMBERS.finish(model.classifier.model)
    torch.testing.assert_close(logits(going_on(model)), numbers, atol=1e-3, rtol=0)
    assert model.head_origin == f"that of {source}, which is for numbers of the same scale"


@pytest.mark.parametrize("unknown", [True, False])
def test_numbers_of_another_scale_have_a_fresh_head(tmp_path: Path, unknown: bool) -> None:
    """One whose scale is unknown as well, such as another program's."""
    source = finished(tmp_path, NUMBERS)
    config = json.loads((source / "config.json").read_text())
    assert (config["label_mean"], config["label_scale"]) == (120.0, 18.0)
    if unknown:
        del config["label_mean"]
        (source / "config.json").write_text(json.dumps(config))
    model = load(source, Regression(mean=0.5, scale=0.1))
    assert model.head_origin == f"new: that of {source} " + (
        "does not say the scale of its numbers"
        if unknown
        else "is for another scale: mean 120, standard deviation 18"
    )
    assert float(logits(going_on(model)).abs()) < 10


def test_weights_of_an_encoder_of_another_size_are_refused(tmp_path: Path) -> None:
    source = save(tmp_path / "c", AutoModelForSequenceClassification, ("a", "b"))
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "intermediate_size": 30}))
    with pytest.raises(ModelError, match=r"do not have the shapes .*: bert\.encoder\.layer\.0"):
        load(source, SingleLabel(("a", "b")))
