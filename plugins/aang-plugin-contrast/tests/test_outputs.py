"""Both contrasts on examples worked out by hand, and what every output keeps to."""

import logging
import math
from dataclasses import replace

import pytest
import torch
from aang_plugin_contrast.simcse import SimCSE
from aang_plugin_contrast.supervised import SupervisedContrast
from aang_testing import SmallHeads, check_output
from torch import Tensor, nn

from aang_core import ConfigError, CorruptedRows, DocumentStatistics, PluginError
from tests.support.plugins import VOCABULARY, SampleRows


def rows_with(labels: list[int] | None, count: int, views: int = 1) -> CorruptedRows:
    rows = SampleRows.of_lengths([4] * count, tokens=4, seed=0)
    return CorruptedRows(
        original=rows.ids,
        corrupted=rows.ids,
        selected=torch.zeros_like(rows.real),
        ordinary=rows.ordinary,
        real=rows.real,
        labels=None if labels is None else torch.tensor(labels),
        statistics=DocumentStatistics(1, torch.ones(VOCABULARY.size, dtype=torch.int64)),
        sees=rows.real.unsqueeze(1) & rows.real.unsqueeze(2),
        vocabulary=VOCABULARY,
        views=views,
    )


def first_tokens(*vectors: tuple[float, float]) -> Tensor:
    """Hidden states ``[B, T = 4, H = 2]`` whose first tokens are the vectors."""
    hidden = torch.randn(len(vectors), 4, 2, dtype=torch.float64)
    hidden[:, 0] = torch.tensor(vectors, dtype=torch.float64)
    return hidden.requires_grad_()


@pytest.mark.parametrize("views", [1, 2])
def test_supervised_contrast_keeps_the_contract(views: int) -> None:
    check_output(SupervisedContrast(views=views))


def test_simcse_keeps_the_contract() -> None:
    check_output(SimCSE())
    check_output(SimCSE(), labelled=False)


def test_supervised_contrast_by_hand() -> None:
    """Four rows on the axes, two of class 0, one of class 1, one of class 2; τ = 0.5.

    Row 0 has cosines 1, 0, −1 with the others, row 1 the same with its own: each has one positive,
    at cosine 1, so L = log(e^2 + e^0 + e^-2) − 2. Rows 2 and 3 are alone in their classes.
    """
    output = SupervisedContrast(temperature=0.5, projection=0)
    head = output.head(SmallHeads())
    targets = output.targets(rows_with([0, 0, 1, 2], 4))
    hidden = first_tokens((3, 0), (1, 0), (0, 2), (-1, 0))
    losses = output.losses(head, hidden, targets)
    expected = math.log(math.exp(2) + 1 + math.exp(-2)) - 2
    assert losses.sums.tolist() == pytest.approx([expected, expected, 0, 0], abs=1e-12)
    assert losses.counts.tolist() == [1, 1, 0, 0]
    assert losses.mean().item() == pytest.approx(expected)


def test_several_positives_are_averaged_outside_of_the_logarithm() -> None:
    """Eq. 2 of Khosla et al., L_out: row 0 has positives at cosines 1 and 0; τ = 1."""
    output = SupervisedContrast(temperature=1.0, projection=0)
    hidden = first_tokens((1, 0), (2, 0), (0, 1), (-1, 0))
    targets = output.targets(rows_with([0, 0, 0, 1], 4))
    losses = output.losses(output.head(SmallHeads()), hidden, targets)
    normaliser = math.log(math.e + 1 + math.exp(-1))
    assert losses.sums[0].item() == pytest.approx(normaliser - 0.5 * (1 + 0))


def test_simcse_by_hand() -> None:
    """Two texts; view 1 of both is on the axes, view 2 of text 0 too, that of text 1 in between."""
    output = SimCSE(temperature=1.0)
    head = nn.Module()
    head.forward = lambda hidden: hidden[:, 0]  # type: ignore[method-assign]
    hidden = first_tokens((1, 0), (0, 1), (1, 0), (1, 1))
    losses = output.losses(head, hidden, output.targets(rows_with(None, 4, views=2)))
    half = math.sqrt(0.5)
    assert losses.sums.tolist() == pytest.approx(
        [
            math.log(math.e + math.exp(half)) - 1,
            math.log(1 + math.exp(half)) - half,
            0,
            0,
        ]
    )
    assert losses.counts.tolist() == [1, 1, 0, 0]


def test_copies_of_a_text_are_not_pushed_apart() -> None:
    """The rows of a small data set come twice in a batch."""
    output = SimCSE(temperature=1.0)
    head = nn.Module()
    head.forward = lambda hidden: hidden[:, 0]  # type: ignore[method-assign]
    different, same, other = (0, 1), (1, 0), (1, 0)
    hidden = first_tokens(*[different, same, other] * 2)
    rows = rows_with(None, 6, views=2)
    text = torch.tensor([0, 1, 1, 0, 1, 1])
    twice = replace(rows, original=rows.original[text])
    losses = output.losses(head, hidden, output.targets(twice))
    alone = math.log(math.e + 1) - 1
    assert losses.sums[1:3].tolist() == pytest.approx([alone, alone])
    assert losses.counts.tolist() == [1, 1, 1, 0, 0, 0]
    only = replace(rows, original=rows.original[[0] * 6])
    assert output.losses(head, hidden, output.targets(only)).counts.sum() == 0


def test_its_head_is_a_layer_with_tanh() -> None:
    head = SimCSE().head(SmallHeads())
    hidden = torch.randn(3, 4, SmallHeads.hidden_size) * 100
    assert head(hidden).shape == (3, SmallHeads.hidden_size)
    assert bool((head(hidden).abs() <= 1).all())


def test_a_batch_without_two_of_a_class_adds_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    output = SupervisedContrast()
    head = output.head(SmallHeads())
    for _ in range(3):
        with caplog.at_level(logging.WARNING):
            targets = output.targets(rows_with([0, 1, 2], 3))
    losses = output.losses(head, torch.randn(3, 4, 8, requires_grad=True), targets)
    assert losses.sums.tolist() == [0, 0, 0]
    assert losses.counts.tolist() == [0, 0, 0]
    assert losses.mean().item() == 0
    assert [r.getMessage() for r in caplog.records] == [
        "supervised-contrast: all 3 rows of a batch have different classes, so it contributes "
        "nothing there; use more rows per step. This is reported once"
    ]


@pytest.mark.parametrize("output", [SupervisedContrast(), SupervisedContrast(views=2), SimCSE()])
def test_one_row_is_no_nan(output: SupervisedContrast | SimCSE) -> None:
    views = len(output.views)
    targets = output.targets(rows_with([0] * views, views, views))
    hidden = torch.randn(views, 4, 8, requires_grad=True)
    losses = output.losses(output.head(SmallHeads()), hidden, targets)
    losses.mean().backward()
    assert bool(losses.sums.isfinite().all())
    assert hidden.grad is not None
    assert bool(hidden.grad.isfinite().all())


def test_half_precision_does_not_round_the_similarities() -> None:
    """Under autocast the loss is that of the projection, which is all that is rounded."""
    torch.manual_seed(0)
    output = SupervisedContrast(projection=0)
    targets = output.targets(rows_with([0, 0, 1, 1], 4))
    hidden = torch.randn(4, 4, 8, requires_grad=True)
    head = output.head(SmallHeads())
    plain = output.losses(head, hidden, targets).sums
    with torch.autocast("cpu", torch.bfloat16):
        cast = output.losses(head, hidden, targets).sums
    assert torch.equal(plain, cast)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature is 0; give a number above 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"projection": -1}, "projection is -1; give a whole number, 0 or more"),
        ({"projection": True}, "projection is True"),
        ({"views": 3}, "views is 3; give 1 or 2"),
    ],
)
def test_options_without_a_meaning(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SupervisedContrast(**options)  # type: ignore[arg-type]


def test_rows_without_labels() -> None:
    with pytest.raises(PluginError, match="needs labelled rows"):
        SupervisedContrast().targets(rows_with(None, 3))
