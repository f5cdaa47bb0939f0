"""The packed engine's rules on other bodies: convolutions, and layers that are used twice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, RowLosses, Task
from tests.core.engine_checks import assert_exact
from tests.core.engine_steps import Step, oracle
from tests.support.gradients import EndTaskHead, PackedEngine, Segment, StreamEngine


class Image2d(nn.Module):
    """Two convolutions, the second with every option, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False)
        self.linear = nn.Linear(6 * 4 * 4, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu_(self.first(x.view(len(x), 1, 8, 8)))
        return torch.tanh(self.linear(self.second(hidden).flatten(1)))


class Signal1d(nn.Module):
    """A convolution over sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(4, 5, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.convolution(x.view(len(x), 4, 16))).mean(dim=2)


class Recurrent(nn.Module):
    """One linear layer and one norm, used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(64, 5)
        self.again = nn.Linear(5, 5)
        self.norm = nn.LayerNorm(5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x)
        for _ in range(3):
            hidden = hidden + self.norm(torch.tanh(self.again(hidden)))
        return hidden


class TwiceEmbedded(nn.Module):
    """One embedding matrix for two sequences of ids, with a padding id."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 5, padding_idx=0)

    def forward(self, x: Tensor) -> Tensor:
        ids = (x.abs() * 100).long() % 9
        first: Tensor = self.embedding(ids[:, :32])
        return torch.tanh(first.sum(dim=1) * self.embedding(ids[:, 32:]).mean(dim=1))


@dataclass
class Regress(Task):
    """A squared error on top of features of width 5."""

    name: str
    head: nn.Module
    factors: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return 0

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        raise NotImplementedError("the batches of these tests are made by hand")

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.mse_loss(head(features), targets["y"], reduction="none").sum(dim=1)
        return RowLosses(losses, torch.ones_like(losses))


def batch(rows: int, generator: torch.Generator) -> Batch:
    x = torch.randn(rows, 64, generator=generator, dtype=torch.float64)
    return Batch({"x": x}, {"y": torch.randn(rows, 2, generator=generator).double()}, rows)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("make", [Image2d, Signal1d, Recurrent, TwiceEmbedded])
@pytest.mark.parametrize("max_rows", [None, 5])
def test_rules_equal_autograd(make: Callable[[], nn.Module], max_rows: int | None) -> None:
    """Each kind of module, to 1e-9, in one pass and in several."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    body = make().double()
    tasks = [Regress(name, nn.Linear(5, 2).double()) for name in ("a", "b", "c", "end")]
    segments = [
        Segment(task, [batch(n, generator)], weight)
        for task, n, weight in zip(tasks, (1, 3, 2, 4), (0.2, 0.0, 0.5, 0.3), strict=True)
    ]
    step = Step(body, segments[-1], segments[:-1], [batch(3, generator)])
    expected = oracle(step, step.end.task.head)
    for engine in (
        StreamEngine(body, EndTaskHead()),
        PackedEngine(body, EndTaskHead(), max_rows=max_rows),
    ):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)
