"""Dev heads on rows drawn for them, and by logistic regression."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import AangError, Batch, Task, load_plugins
from tests.core.engine_steps import Classify
from tests.support.gradients import (
    PENALTIES,
    DevHead,
    DevHeadSettings,
    DrawnDevHead,
    LogisticDevHead,
    Passes,
    choose_dev_head,
    find_dev_heads,
    first_token,
)


def test_without_rows_to_draw_nothing_is_fitted() -> None:
    head = DrawnDevHead(LogisticDevHead(), Passes(nn.Linear(1, 1), "fp32"), 3)
    with pytest.raises(AangError, match="draw_from"):
        head.fit(cast(Task, None), [], [])


def test_drawn_rows_are_no_way_to_fit() -> None:
    heads = find_dev_heads("remembered", "drawn", load_plugins().registry)
    settings = DevHeadSettings(fit="drawn", plugins=heads)
    with pytest.raises(AangError, match="--dev-head-fit drawn: chooses rows and fits nothing"):
        choose_dev_head(settings, Passes(nn.Linear(1, 1), "fp32"), torch.Generator())


def test_logistic_regression_chooses_no_rows() -> None:
    heads = find_dev_heads("logistic", "adamw", load_plugins().registry)
    settings = DevHeadSettings("logistic", plugins=heads)
    with pytest.raises(AangError, match="--dev-head logistic: fits and chooses no rows"):
        choose_dev_head(settings, Passes(nn.Linear(1, 1), "fp32"), torch.Generator())


def test_drawn_rows_of_the_step_itself_are_left_out() -> None:
    """If there are others, features and targets alike."""
    body = nn.Identity()
    numbers = torch.tensor([4, 1, 4, 0])
    inputs = {"input": numbers.float().unsqueeze(1)}
    drawn = Batch(inputs, {"labels": numbers}, 4, numbers=numbers)
    seen: list[list[int]] = []

    class Seen(DevHead):
        def fit(
            self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
        ) -> nn.Module:
            assert torch.equal(features[0].squeeze(1), batches[0].targets["labels"].float())
            seen.append(batches[0].targets["labels"].tolist())
            assert len(seen[-1]) == batches[0].rows
            return nn.Identity()

    passes = Passes(nn.Sequential(body, nn.Linear(1, 1).requires_grad_(False)), "fp32")
    passes.body[1].weight.data.fill_(1.0)
    passes.body[1].bias.data.zero_()
    head = DrawnDevHead(Seen(), passes, 4)
    head.draw_from(lambda count: [drawn])
    passes.body.train()
    body.eval()
    for own in ([4, 7], [0, 1, 4]):
        step = Batch({}, {}, len(own), numbers=torch.tensor(own))
        head.fit(cast(Task, None), [], [step])
    assert seen == [[1, 0], [4, 1, 4, 0]]
    assert passes.body.training
    assert not body.training, "what rests goes on resting"


def test_drawn_rows_go_through_the_body_without_dropout() -> None:
    """And leave it in training, with no gradient and no draw of torch's own generator."""
    body = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    batch = Batch({"input": torch.ones(3, 2)}, {"labels": torch.zeros(3, dtype=torch.int64)}, 3)
    asked: list[int] = []

    def source(count: int) -> list[Batch]:
        asked.append(count)
        return [batch]

    class Seen(DevHead):
        def fit(
            self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
        ) -> nn.Module:
            assert torch.equal(features[0], body[0](batch.inputs["input"]).detach())
            assert not features[0].requires_grad
            return nn.Identity()

    head = DrawnDevHead(Seen(), Passes(body.train(), "fp32"), 3)
    assert head.draws == 3
    head.draw_from(source)
    before = torch.random.get_rng_state()
    head.fit(cast(Task, None), [], [])
    assert asked == [3]
    assert body.training
    assert torch.equal(torch.random.get_rng_state(), before)


def logistic_rows(count: int, dtype: torch.dtype) -> tuple[Tensor, Batch]:
    generator = torch.Generator().manual_seed(0)
    features = 3.0 + torch.randn(count, 1, 6, generator=generator, dtype=dtype)
    noise = torch.randn(count, generator=generator, dtype=dtype)
    labels = (features[:, 0, 0] + 0.5 * noise > 3.0).long() + (features[:, 0, 1] > 3.5).long()
    return features, Batch({}, {"labels": labels}, count)


def test_logistic_regression_is_at_its_minimum() -> None:
    """The gradient of loss and penalty is zero there, at one of the penalties."""
    task = Classify(nn.Sequential(nn.Flatten(), nn.Linear(6, 3)).double())
    features, batch = logistic_rows(80, torch.float64)
    head = LogisticDevHead(first_token, iterations=500).fit(task, [features], [batch])
    parameters = list(head.parameters())
    loss = task.losses(head, features, batch.targets).mean()
    gradients = torch.autograd.grad(loss, parameters)
    loss, weights = loss.detach(), [p.detach() for p in parameters]
    at = [
        float(
            sum((g + penalty * p).square().sum() for g, p in zip(gradients, weights, strict=True))
        )
        for penalty in PENALTIES
    ]
    assert min(at) < 1e-8
    assert float(loss) < 0.8 * float(
        functional.cross_entropy(torch.zeros(80, 3), batch.targets["labels"])
    )


def test_no_row_is_on_both_sides_when_the_penalty_is_chosen() -> None:
    """Rows of earlier steps come again; their labels of chance would be known by heart."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(24, 1, 40, generator=generator)
    labels = torch.randint(0, 2, (24,), generator=generator)
    task = Classify(nn.Sequential(nn.Flatten(), nn.Linear(40, 2)))
    heads = []
    for rows in (torch.arange(24), torch.arange(24).repeat(5)):
        batch = Batch({}, {"labels": labels[rows]}, len(rows), numbers=rows)
        heads.append(LogisticDevHead(first_token).fit(task, [features[rows]], [batch]))
    torch.testing.assert_close(heads[0](features), heads[1](features), rtol=1e-2, atol=1e-3)


def test_the_held_out_rows_do_not_follow_the_order_of_the_file() -> None:
    """In it, every fourth row may be of one class; remembered rows come in random order."""
    numbers = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    features, batch = logistic_rows(40, torch.float32)
    ordered = replace(batch, numbers=numbers)
    heads = [LogisticDevHead(first_token)] * 2
    task = Classify(nn.Sequential(nn.Flatten(), nn.Linear(6, 3)))
    with_numbers, without = (
        head.fit(task, [features], [rows])(features)
        for head, rows in zip(heads, (ordered, batch), strict=True)
    )
    assert torch.equal(with_numbers, without)


def test_logistic_regression_reads_what_is_kept_and_draws_nothing() -> None:
    """Of remembered features and of whole ones alike; the same rows give the same head."""
    task = Classify(nn.Sequential(nn.Flatten(), nn.Linear(6, 3), nn.Dropout(0.5)))
    features, batch = logistic_rows(40, torch.float32)
    before = torch.random.get_rng_state()
    heads = [LogisticDevHead(first_token).fit(task, [features], [batch]) for _ in range(2)]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert task.head[2].training, "the end task's head is as it was"
    whole = torch.cat([features, torch.randn(40, 4, 6)], dim=1)
    assert torch.equal(heads[0](whole), heads[1](features))
    with pytest.raises(AangError, match="adamw"):
        LogisticDevHead().fit(task, [whole, features], [batch, batch])
