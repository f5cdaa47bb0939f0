"""Losses, decoding and scores of each kind of end task."""

import math
import time
from collections import Counter
from dataclasses import replace

import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import f1_score
from transformers import BertConfig, BertForSequenceClassification

from aang_core import ReadReport, TaggedWord
from tests.support.data import NO_LABEL, MultiLabel, Regression, SingleLabel, TaskType, tag_labels
from tests.support.runs import evaluation_of

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


def test_a_class_that_train_lacks_counts_as_wrong() -> None:
    """Scores are scikit-learn's over all classes that occur or are predicted."""
    kind = replace(SingleLabel(("a", "b")), unseen=("x", "y"))
    labels = kind.encode(["a", "b", "x", "y", "a"], lambda: (), "dev").rows
    assert labels is not None
    logits = torch.tensor([[2.0, 0], [0, 2], [2, 0], [0, 2], [0, 2]])
    predicted = logits.argmax(dim=1)
    found = kind.scores(labels, logits)
    assert found["macro-f1"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    assert found["macro-f1"] == pytest.approx((0.5 + 0.5 + 0 + 0) / 4)
    assert found["accuracy"] == pytest.approx(2 / 5)
    errors = kind.errors(labels, logits)
    assert list(errors.classes) == ["a", "b", "x", "y"]
    assert errors.classes["x"] == {"precision": 0, "recall": 0, "f1": 0, "examples": 1}
    assert errors.confusion == [[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert kind.counts(labels) == {"a": 2, "b": 1, "x": 1, "y": 1}
    losses = kind.losses(logits, labels)
    seen = torch.tensor([0, 1, 4])
    assert losses.counts.tolist() == [1, 1, 0, 0, 1]
    torch.testing.assert_close(
        losses.mean(), torch.nn.functional.cross_entropy(logits[seen], labels[seen])
    )
    assert kind.labels == ("a", "b")


def test_one_of_several_classes_that_train_lacks_counts_as_missed() -> None:
    kind = replace(MultiLabel(("a", "b")), unseen=("x",))
    labels = kind.encode([("a", "x"), ("b",), ("x",)], lambda: (), "dev").rows
    assert labels is not None
    logits = torch.tensor([[3.0, -3], [-3, 3], [-3, -3]])
    found = kind.scores(labels, logits)
    predicted = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    for metric, average in (("macro-f1", "macro"), ("micro-f1", "micro")):
        expected = f1_score(labels.int().numpy(), predicted, average=average)
        assert found[metric] == pytest.approx(expected)
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert kind.errors(labels, logits).classes["x"]["examples"] == 2
    same = MultiLabel(("a", "b"))
    known = same.encode([("a",), ("b",), ()], lambda: (), "dev").rows
    assert known is not None
    assert torch.equal(kind.losses(logits, labels).sums, same.losses(logits, known).sums)
    assert kind.tuned(labels, logits, "macro-f1").unseen == ("x",)


@pytest.mark.parametrize(
    ("tags", "unseen", "expected"),
    [
        (("B-PER", "O"), "B-LOC", {"entity-f1": 2 / 3, "accuracy": 2 / 3}),
        (("B-PER", "O"), "LOC", {"entity-f1": 1.0, "accuracy": 2 / 3}),  # part of no span
        (("NOUN", "VERB"), "ADV", {"macro-f1": 5 / 9, "accuracy": 2 / 3}),
    ],
)
def test_a_tag_that_train_lacks_counts_as_missed(
    tags: tuple[str, str], unseen: str, expected: dict[str, float]
) -> None:
    """Three words; the model takes the third, which has the new tag, for the second tag."""
    kind = replace(tag_labels(tags), unseen=(unseen,))
    words = tuple(TaggedWord(i, i + 1, tag) for i, tag in enumerate((*tags, unseen)))
    offsets = [[(i, i + 1) for i in range(3)]]
    labels = kind.encode([words], lambda: offsets, "dev").tokens
    assert labels is not None
    labels = labels.unsqueeze(0)
    logits = torch.tensor([[[2.0, 0], [0, 2], [0, 2]]])
    found = kind.scores(labels, logits)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert kind.losses(logits, labels).counts.tolist() == [2]
    assert set(kind.errors(labels, logits).classes) == set(kind.classes) == set(kind.counts(labels))


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


def tried_one_by_one(train: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Each metric of the constant set that is best by it on train, from the sets themselves."""
    kind = MultiLabel(tuple(map(str, range(train.shape[1]))))
    order = train.sum(dim=0).argsort(descending=True, stable=True)
    sets = [torch.zeros(train.shape[1]) for _ in range(len(order) + 1)]
    for k, chosen in enumerate(sets):
        chosen[order[:k]] = 1.0
    counted = Counter(map(tuple, train.tolist()))
    sets.append(torch.tensor(max(counted, key=lambda one: (counted[one], one))))
    on_train = [kind.scores(train, (one - 0.5).expand(train.shape)) for one in sets]
    best = {m: max(range(len(sets)), key=lambda i: on_train[i][m]) for m in kind.metrics}
    return {
        m: kind.scores(labels, (sets[i] - 0.5).expand(labels.shape))[m] for m, i in best.items()
    }


@pytest.mark.parametrize("seed", range(40))
def test_the_best_constant_set_is_the_best_of_all_that_are_tried(seed: int) -> None:
    """With ties, empty rows, and classes that train lacks."""
    generator = torch.Generator().manual_seed(seed)
    classes, rows = seed % 11 + 1, seed % 7 * 3 + 1
    shares = torch.rand(classes, generator=generator) ** (1 + seed % 4)
    train = (torch.rand(rows, classes, generator=generator) < shares).float()
    labels = (torch.rand(9, classes, generator=generator) < shares).float()
    found = MultiLabel(tuple(map(str, range(classes)))).baseline_scores(train, labels)
    expected = tried_one_by_one(train, labels)
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_the_best_constant_set_of_many_classes_takes_no_time() -> None:
    """A set for each number of classes over all labels would take minutes."""
    train = (torch.rand(2000, 3000, generator=torch.Generator().manual_seed(0)) < 0.01).float()
    began = time.process_time()
    MultiLabel(tuple(map(str, range(3000)))).baseline_scores(train, train)
    assert time.process_time() - began < 10


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


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("rows", [slice(None), slice(3, 4)], ids=["all", "one"])
def test_predictions_that_are_not_finite_have_no_score(bad: float, rows: slice) -> None:
    """Else a model that has diverged would have a finite correlation."""
    labels = torch.arange(8.0)
    logits = labels.clone().unsqueeze(1)
    logits[rows] = bad
    scores = Regression().scores(labels, logits)
    assert set(scores) == {*Regression.metrics, "rmse"}
    assert all(math.isnan(score) for score in scores.values())


def test_a_kind_without_classes_counts_none() -> None:
    """Whatever its labels are: here a distribution for each row."""
    assert TaskType.counts(Regression(("score",)), torch.ones(3, 2)) == {}


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
TAGS = tag_labels(("B-PER", "I-PER", "O"))


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
    nothing = torch.full_like(labels, 2)  # warnings of averages over no spans would be errors here
    errors = TAGS.errors(nothing, torch.nn.functional.one_hot(nothing, 3).float())
    assert errors.classes["PER"] == {"precision": 0, "recall": 0, "f1": 0, "examples": 0}


@pytest.mark.parametrize(("unit", "last"), [("U", "L"), ("S", "E")])
def test_spans_of_one_word_and_last_words_are_known(unit: str, last: str) -> None:
    """In BILOU and in BIOES alike: two spans of one word, then two of two words."""
    kind = tag_labels(("B-A", f"{last}-A", f"{unit}-A", "O"))
    labels = torch.tensor([[2, 2, 3, 0, 1, 0, 1]])
    logits = torch.nn.functional.one_hot(labels, 4).float()
    assert kind.counts(labels) == {"A": 4}
    assert kind.errors(labels, logits).classes["A"]["examples"] == 4
    merged = torch.nn.functional.one_hot(torch.tensor([[0, 1, 3, 0, 1, 0, 1]]), 4).float()
    scores = kind.scores(labels, merged)
    assert scores["entity-f1"] == pytest.approx(2 * 2 / (4 + 3))
    places = [[(2 * i, 2 * i + 1) for i in range(7)]]
    (found,) = kind.decode(logits, ["a b c d e f g"], places)
    assert [one["text"] for one in found.label] == ["a", "b", "d e", "f g"]


def test_tags_without_prefixes_are_classes_of_words() -> None:
    kind = tag_labels(("NOUN", "VERB"))
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


ROWS, DRAWN = 23, torch.Generator().manual_seed(5)
RANDOM: list[tuple[TaskType, torch.Tensor, torch.Tensor]] = [
    (
        SingleLabel(("a", "b", "c", "d")),
        torch.randint(3, (ROWS,), generator=DRAWN),
        torch.randn(ROWS, 4, generator=DRAWN),
    ),
    (
        MultiLabel(("a", "b", "c")),
        (torch.rand(ROWS, 3, generator=DRAWN) < 0.3).float(),
        torch.randn(ROWS, 3, generator=DRAWN),
    ),
    (
        Regression(3.0, 2.0),
        torch.randint(4, (ROWS,), generator=DRAWN).float(),
        torch.randint(5, (ROWS, 1), generator=DRAWN).float(),
    ),
    *(
        (
            tag_labels(tags),
            torch.randint(3, (ROWS, 6), generator=DRAWN).index_fill(
                1, torch.tensor([0, 4]), NO_LABEL
            ),
            torch.randn(ROWS, 6, 3, generator=DRAWN),
        )
        for tags in (("B-per", "I-per", "O"), ("ADJ", "NOUN", "VERB"))
    ),
]


@pytest.mark.parametrize(("kind", "truth", "logits"), RANDOM)
def test_scores_of_resamples_are_those_of_their_rows(
    kind: TaskType, truth: torch.Tensor, logits: torch.Tensor
) -> None:
    """Computed for all at once from how often each has a row, or one by one from the rows."""
    drawn = torch.randint(ROWS, (20, ROWS), generator=torch.Generator().manual_seed(1))
    drawn[0], drawn[1] = torch.arange(ROWS), 7
    counts = torch.stack([rows.bincount(minlength=ROWS) for rows in drawn]).double()
    found = kind.resampled(truth, logits, counts)
    one_by_one = [kind.scores(truth[rows], logits[rows]) for rows in drawn]
    assert set(found) == set(one_by_one[0])
    for name, values in found.items():
        assert values.tolist() == pytest.approx([scores[name] for scores in one_by_one])


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_scores_of_numbers_do_not_depend_on_their_unit(unit: float) -> None:
    """But RMSE; a saved model gives numbers in the unit of the data."""
    truth = torch.randn(ROWS, generator=DRAWN).double()
    found = (truth + 0.1 * torch.randn(ROWS, generator=DRAWN)).unsqueeze(1)
    one, other = (
        evaluation_of(Regression(), truth, found),
        evaluation_of(Regression(), unit * (truth + 7), unit * (found + 7)),
    )
    for name in ("spearman", "pearson", "r2"):
        assert other.scores[name] == pytest.approx(one.scores[name])
        assert other.intervals[name] == pytest.approx(one.intervals[name])
    assert other.scores["rmse"] == pytest.approx(unit * one.scores["rmse"])
    alike = Regression().scores(unit * truth, torch.full((ROWS, 1), 0.1 * unit))
    assert (alike["pearson"], alike["spearman"]) == (0, 0)


def test_intervals_are_wide_where_rows_are_few() -> None:
    """Of accuracy they are about as wide as the normal distribution has them."""
    kind = SingleLabel(("a", "b"))

    def interval(rows: int) -> list[float]:
        truth = torch.zeros(rows, dtype=torch.int64)
        right = torch.arange(rows) % 5 > 0
        logits = torch.stack([right, ~right], dim=1).double()
        found = evaluation_of(kind, truth, logits)
        assert found.scores["accuracy"] == 0.8
        assert evaluation_of(kind, truth, logits).intervals == found.intervals
        return found.intervals["accuracy"]

    for rows in (30, 3000):
        low, high = interval(rows)
        error = 1.96 * math.sqrt(0.8 * 0.2 / rows)
        assert low == pytest.approx(0.8 - error, abs=0.2 * error)
        assert high == pytest.approx(0.8 + error, abs=0.2 * error)
