"""Losses, decoding and scores of each kind of end task."""

import math

import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import f1_score
from transformers import BertConfig, BertForSequenceClassification

from aang_core import ReadReport, TaggedWord
from aang_core.task_types.multi_label import MultiLabel
from aang_core.task_types.regression import Regression
from aang_core.task_types.token_labels import NO_LABEL, TokenLabels

torch.set_num_threads(1)


def test_sets_are_scored_as_scikit_learn_scores_them() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(40, 4, generator=generator) < 0.4).float()
    logits = torch.randn(40, 4, generator=generator)
    kind = MultiLabel(("a", "b", "c", "d"))
    found = kind.scores(truth, logits)
    predicted = (logits >= 0).int().numpy()
    for metric, average in (("macro-f1", "macro"), ("micro-f1", "micro")):
        expected = f1_score(truth.int().numpy(), predicted, average=average)
        assert found[metric] == pytest.approx(expected)
    assert kind.counts(truth) == dict(zip("abcd", truth.sum(0).int().tolist(), strict=True))


def test_the_threshold_is_the_best_on_dev() -> None:
    """Classes with probabilities of 0.3 are found by a threshold below it."""
    truth = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    logits = torch.where(truth > 0, 0.3, 0.1).logit()
    kind = MultiLabel(("a", "b"))
    assert kind.scores(truth, logits)["macro-f1"] == 0.0
    tuned = kind.tuned(truth, logits, "macro-f1")
    assert 0.1 < tuned.threshold <= 0.3
    assert tuned.scores(truth, logits)["macro-f1"] == 1.0
    assert [one.label for one in tuned.decode(logits, ["", ""], ())] == [["a"], ["b"]]


def test_a_constant_set_is_chosen_on_train() -> None:
    train = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    scores = MultiLabel(("a", "b")).baseline_scores(train, torch.tensor([[0.0, 1.0]]))
    assert scores["accuracy"] == 0.0  # the most frequent set is {a}
    assert scores["macro-f1"] == pytest.approx(0.5)  # all classes: F1 of 1 for b, 0 for a


def test_numbers_are_scaled_and_scored_in_their_own_unit() -> None:
    values = (10.0, 20.0, 20.0, 40.0)
    kind = Regression().fitted(values, "train", "--label", ReadReport())
    labels = kind.encode(values, lambda: (), "train").rows
    assert labels is not None
    assert labels.mean().item() == pytest.approx(0, abs=1e-6)
    logits = torch.tensor([[-1.0], [0.5], [0.0], [0.2]])
    found = kind.scores(labels, logits)
    assert found["spearman"] == pytest.approx(spearmanr(values, logits.flatten()).statistic)
    raw = logits.flatten() * kind.scale + kind.mean
    rmse = math.sqrt(float((raw - torch.tensor(values)).square().mean()))
    assert found["rmse"] == pytest.approx(rmse, rel=1e-5)
    assert kind.baseline_scores(labels, labels)["r2"] == pytest.approx(0, abs=1e-6)
    assert kind.scores(labels, torch.ones(4, 1))["spearman"] == 0.0


def test_a_saved_model_computes_the_number_itself() -> None:
    config = BertConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        num_labels=1,
        problem_type="regression",
    )
    model = BertForSequenceClassification(config).eval()
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids).logits
    Regression(mean=100.0, scale=7.0).finish(model)
    assert model(ids).logits.item() == pytest.approx(before.item() * 7 + 100, rel=1e-5)


WORDS = (TaggedWord(0, 3, "B-PER"), TaggedWord(4, 12, "I-PER"), TaggedWord(12, 13, "O"))
TEXT = "Ada Lovelace,"
TAGS = TokenLabels(("B-PER", "I-PER", "O"))


@pytest.mark.parametrize("space", [0, 1], ids=["trimmed", "with the space before"])
def test_only_the_first_token_of_a_word_is_labelled(space: int) -> None:
    places = [(0, 0), (0, 3), (4 - space, 8), (8, 12), (12, 13), (0, 0)]
    encoded = TAGS.encode([WORDS, WORDS], lambda: [places, places[:3]], "train")
    assert encoded.tokens is not None
    assert encoded.tokens.tolist() == [
        *(NO_LABEL, 0, 1, NO_LABEL, 2, NO_LABEL),
        *(NO_LABEL, 0, 1),
    ]


def test_the_loss_of_a_row_is_over_its_words() -> None:
    labels = torch.tensor([[NO_LABEL, 0, 2], [NO_LABEL, NO_LABEL, NO_LABEL]])
    logits = torch.randn(2, 3, 3, requires_grad=True)
    sums, counts = TAGS.losses(logits, labels)
    shares = logits[0].log_softmax(dim=-1)
    assert sums[0].item() == pytest.approx(-(shares[1, 0] + shares[2, 2]).item())
    assert counts.tolist() == [2, 0]
    assert sums[1].item() == 0.0


def test_spans_are_scored_as_wholes() -> None:
    labels = torch.tensor([[NO_LABEL, 0, 1, 2, 0]])
    found = torch.tensor([[2, 0, 2, 2, 0]])  # half of the first span
    logits = torch.nn.functional.one_hot(found, 3).float()
    scores = TAGS.scores(labels, logits)
    assert scores["entity-f1"] == pytest.approx(0.5)
    assert scores["accuracy"] == pytest.approx(0.75)
    assert TAGS.counts(labels) == {"PER": 2}
    assert TAGS.errors(labels, logits).classes["PER"]["recall"] == pytest.approx(0.5)
    assert TAGS.baseline_scores(labels, labels)["entity-f1"] < 1


def test_tags_without_prefixes_are_classes_of_words() -> None:
    kind = TokenLabels(("NOUN", "VERB"))
    assert kind.metrics[0] == "macro-f1"
    assert kind.classes == ("NOUN", "VERB")
    labels = torch.tensor([[NO_LABEL, 0, 1]])
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 0, 0]]), 2).float()
    assert kind.scores(labels, logits)["accuracy"] == 0.5
    assert kind.errors(labels, logits).confusion == [[1, 0], [1, 0]]


def test_predicted_spans_have_their_place_and_text() -> None:
    places = [[(0, 0), (0, 3), (4, 8), (8, 12), (12, 13), (0, 0)]]
    logits = torch.nn.functional.one_hot(torch.tensor([[2, 0, 1, 0, 2, 2]]), 3).float()
    (found,) = TAGS.decode(logits, [TEXT], places)
    assert found.label == [{"start": 0, "end": 12, "label": "PER", "text": "Ada Lovelace"}]
