"""What dev heads are fitted to, how, and what they keep from step to step."""

import copy
from collections.abc import Sequence
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from aang_core import AangError, Batch, Task, UnknownNameError, load_plugins
from tests.core.engine_steps import Classify
from tests.support.gradients import (
    DevHead,
    DevHeadSettings,
    DrawnDevHead,
    FreshDevHead,
    LogisticDevHead,
    Passes,
    RememberingDevHead,
    choose_dev_head,
    find_dev_heads,
    first_token,
)


class Watched(DevHead):
    """Notes what it is fitted to: the first feature and the label of each row."""

    def __init__(self) -> None:
        self.seen: list[list[tuple[float, int]]] = []

    def fit(
        self, end_task: Task, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> nn.Module:
        firsts = torch.cat([f.flatten(1)[:, 0] for f in features]).tolist()
        labels = torch.cat([b.targets["labels"] for b in batches]).tolist()
        assert [b.rows for b in batches] == [len(f) for f in features]
        self.seen.append(list(zip(firsts, labels, strict=True)))
        return nn.Identity()


NO_TASK = cast(Task, None)


def rows(*numbers: int, tokens: int = 3) -> tuple[Tensor, Batch]:
    """Rows whose features and labels are their numbers."""
    features = torch.tensor(numbers, dtype=torch.float32).reshape(-1, 1, 1).expand(-1, tokens, 2)
    return features, Batch({}, {"labels": torch.tensor(numbers)}, len(numbers))


def observe(head: DevHead, *batches: tuple[Tensor, Batch]) -> None:
    head.observe([f for f, _ in batches], [b for _, b in batches])


def fitted(head: RememberingDevHead) -> list[int]:
    """The numbers of the rows that it is fitted to."""
    head.fit(NO_TASK, *([rows(99)[0]], [rows(99)[1]]))
    inner = head.inner
    assert isinstance(inner, Watched)
    seen = inner.seen[-1]
    assert all(first == label for first, label in seen)
    return [label for _, label in seen]


def test_the_latest_rows_of_earlier_steps_are_remembered() -> None:
    """As many steps as reach the number of rows, the oldest rows of which are cut."""
    head = RememberingDevHead(Watched(), 5, first_token)
    assert head.remembers
    for step, (ready, numbers) in enumerate(
        [(False, [0, 1]), (True, [0, 1, 10, 11]), (True, [1, 10, 11, 20, 21])]
    ):
        observe(head, rows(10 * step, 10 * step + 1))
        assert (head.ready, fitted(head)) == (ready, numbers)
    assert all(t.shape == (len(t), 1, 2) for n, t in head.state_dict().items() if "features" in n)


def test_how_a_step_is_batched_changes_nothing() -> None:
    """Rows of two lengths in several batches, or one after the other, are remembered alike."""
    heads = [RememberingDevHead(Watched(), 7, first_token) for _ in range(3)]
    for step in (0, 10, 20):
        numbers = [step + i for i in range(4)]
        observe(heads[0], rows(*numbers))
        observe(heads[1], rows(*numbers[:1], tokens=5), rows(*numbers[1:]))
        for i, number in enumerate(numbers):
            features, batch = rows(number)
            heads[2].observe([features], [batch], begins=i == 0)
    steps = [{name.partition("|")[0] for name in head.state_dict()} for head in heads]
    assert steps == [{"0", "1"}] * 3
    assert fitted(heads[0]) == fitted(heads[1]) == fitted(heads[2]) == [11, 12, 13, 20, 21, 22, 23]


def test_rows_of_the_step_itself_are_left_out() -> None:
    """Remembered from an earlier pass over the data; but a head of something there must be."""
    head = RememberingDevHead(Watched(), 9, first_token)

    def numbered(*numbers: int) -> tuple[Tensor, Batch]:
        features, batch = rows(*numbers)
        return features, Batch({}, batch.targets, batch.rows, numbers=torch.tensor(numbers))

    observe(head, numbered(1, 2), numbered(3))
    observe(head, numbered(4, 5, 6))

    def fit(*numbers: int) -> list[int]:
        features, batch = numbered(*numbers)
        head.fit(NO_TASK, [features], [batch])
        assert isinstance(head.inner, Watched)
        return [label for _, label in head.inner.seen[-1]]

    assert fit(3, 5, 8) == [1, 2, 4, 6]
    assert fit(7) == [1, 2, 3, 4, 5, 6]
    assert fit(1, 2, 3, 4, 5, 6) == [1, 2, 3, 4, 5, 6]
    again = RememberingDevHead(Watched(), 9, first_token)
    again.load_state_dict(head.state_dict())
    head = again
    assert fit(4, 5, 6) == [1, 2, 3]


def test_one_step_with_all_rows_is_enough() -> None:
    head = RememberingDevHead(Watched(), 3, first_token)
    observe(head, rows(1, 2, 3, 4))
    assert head.ready
    assert fitted(head) == [2, 3, 4]


def test_what_is_remembered_can_be_saved_and_taken_up() -> None:
    first, again = (RememberingDevHead(Watched(), 5, first_token) for _ in range(2))
    for numbers in ((1, 2, 3), (4, 5, 6)):
        observe(first, rows(*numbers[:1]), rows(*numbers[1:]))
    observe(again, rows(7))
    again.load_state_dict(first.state_dict())
    assert again.ready
    for head in (first, again):
        observe(head, rows(8, 9))
    assert fitted(first) == fitted(again) == [4, 5, 6, 8, 9]


def test_without_rows_nothing_is_fitted() -> None:
    """Asking too early raises an error instead of fitting a head to the step's own rows."""
    with pytest.raises(AangError, match="ready"):
        RememberingDevHead(Watched()).fit(NO_TASK, [rows(1)[0]], [rows(1)[1]])


def test_adamw_ends_after_the_step_whose_loss_changes_little() -> None:
    """A tolerance above every change ends the fit with the second step, which is kept."""
    task = Classify(nn.Linear(4, 3))
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(20, 4, generator=generator)
    batch = Batch({}, {"labels": torch.randint(3, (20,), generator=generator)}, 20)

    def fit(iterations: int, tolerance: float) -> Tensor:
        fresh = FreshDevHead(
            torch.Generator().manual_seed(1), iterations=iterations, tolerance=tolerance
        )
        weight = fresh.fit(task, [features], [batch]).get_parameter("weight")
        assert weight.grad is None
        return weight.detach().clone()

    assert torch.equal(fit(10, 1e9), fit(2, 0.0))
    assert not torch.equal(fit(10, 0.0), fit(2, 0.0))


def test_adamw_steps_as_the_released_code_does() -> None:
    """The third step depends on the betas (0.9, 0.98)."""
    task = Classify(nn.Linear(4, 3))
    torch.manual_seed(0)
    features, batch = 5 * torch.randn(20, 4), Batch({}, {"labels": torch.arange(20) % 3}, 20)

    def fit(iterations: int) -> nn.Linear:
        generator = torch.Generator().manual_seed(1)
        fresh = FreshDevHead(generator, iterations=iterations, tolerance=0.0)
        return cast(nn.Linear, copy.deepcopy(fresh.fit(task, [features], [batch])))

    head, first, second = (fit(iterations) for iterations in (3, 0, 0))
    by_hand = _three_steps(first, features, batch.targets["labels"], betas=(0.9, 0.98))
    of_torch = _three_steps(second, features, batch.targets["labels"], betas=(0.9, 0.999))
    assert torch.allclose(head.weight, by_hand, rtol=0, atol=1e-6)
    assert not torch.allclose(head.weight, of_torch, rtol=0, atol=1e-5)


def _three_steps(
    head: nn.Linear, features: Tensor, labels: Tensor, betas: tuple[float, float]
) -> Tensor:
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2, betas=betas, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(features), labels).backward()
        optimizer.step()
    return head.weight


def test_what_the_end_tasks_head_does_not_train_stays_as_it_is_there() -> None:
    """Frozen layers and buffers are those of its head now, not random or those of the first fit."""
    torch.manual_seed(0)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    norm = nn.BatchNorm1d(4)
    task = Classify(nn.Sequential(frozen, norm, nn.Linear(4, 3)))
    features, batch = torch.randn(20, 4), Batch({}, {"labels": torch.arange(20) % 3}, 20)
    fresh = FreshDevHead(torch.Generator().manual_seed(1))
    for _ in range(2):
        head = fresh.fit(task, [features], [batch])
        assert torch.equal(head.get_parameter("0.weight"), frozen.weight)
        assert not torch.equal(head.get_parameter("2.weight"), task.head.get_parameter("2.weight"))
        assert torch.equal(head.get_buffer("1.running_mean"), norm.running_mean)
        task.head(features + 1)
        with torch.no_grad():
            frozen.weight.add_(1)
    assert all(p.grad is None for p in (*head.parameters(), *task.head.parameters()))


def test_a_temperature_begins_as_in_the_end_tasks_head() -> None:
    """With zeros, no gradient would reach the body, or it would be NaN."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain, self.temperature = (nn.Parameter(t) for t in (torch.rand(4), torch.rand(())))
            self.norm, self.out = nn.LayerNorm(4), nn.Linear(4, 3)

        def forward(self, features: Tensor) -> Tensor:
            found: Tensor = self.out(self.norm(features) * self.gain) / self.temperature
            return found

    own = Scaled()
    nn.init.uniform_(own.norm.weight)
    nn.init.uniform_(own.norm.bias)
    batch = Batch({}, {"labels": torch.arange(5) % 3}, 5)
    fresh = FreshDevHead(torch.Generator(), iterations=0)
    head = fresh.fit(Classify(own), [torch.randn(5, 4)], [batch])
    for name in ("gain", "temperature"):
        assert torch.equal(head.get_parameter(name), own.get_parameter(name))
    assert (head.get_parameter("norm.weight") == 1).all()
    assert not head.get_parameter("norm.bias").any()


def test_a_head_with_nothing_to_train_is_taken_as_it_is() -> None:
    """The body may end in the logits."""
    features, batch = torch.randn(5, 3), Batch({}, {"labels": torch.arange(5) % 3}, 5)
    head = FreshDevHead(torch.Generator()).fit(Classify(nn.Identity()), [features], [batch])
    assert torch.equal(head(features), features)


def test_a_choice_of_dev_heads() -> None:
    passes = Passes(nn.Linear(2, 2), "fp32")
    brought = find_dev_heads("drawn", "logistic", load_plugins().registry)
    made = {
        kind: choose_dev_head(DevHeadSettings(kind, plugins=brought), passes, torch.Generator())
        for kind in ("remembered", "drawn", "own-rows", "end-task")
    }
    assert [head.remembers for head in made.values()] == [True, False, False, False]
    assert [head.draws for head in made.values()] == [0, 256, 0, 0]
    assert [head.ready for head in made.values()] == [False, True, True, True]
    settings = DevHeadSettings("drawn", 7, "logistic", average=0.9, plugins=brought)
    averaged = choose_dev_head(settings, passes, torch.Generator())
    assert isinstance(averaged, DrawnDevHead)
    assert isinstance(averaged.inner, LogisticDevHead)
    assert averaged.draws == 7
    assert averaged.average is not None


def test_an_unknown_dev_head_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no dev head remember; .*remembered"):
        find_dev_heads("remember", "adamw", load_plugins().registry)
