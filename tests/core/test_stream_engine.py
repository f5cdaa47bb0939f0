"""The stream engine against torch.autograd in float64."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, RowLosses, Task
from tests.core.encoders import VOCABULARY, tiny_text_model
from tests.support.gradients import DevHead, EndTaskHead, FreshDevHead, Segment, StreamEngine
from tests.support.model import TextModel

SIGNALS = frozenset({"cosine", "dot", "norm"})


@dataclass
class Classify(Task):
    """An end task over given rows."""

    head: nn.Module
    name: str = "end-task"
    factors: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return 0

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        ids = torch.randint(VOCABULARY, (len(rows), 7), generator=generator)
        labels = torch.randint(3, (len(rows),), generator=generator)
        real = torch.ones_like(ids, dtype=torch.bool)
        real[0, 4:] = False
        return Batch({"input_ids": ids, "attention_mask": real}, {"labels": labels}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.cross_entropy(head(features), targets["labels"], reduction="none")
        return RowLosses(losses, torch.ones_like(losses))


@dataclass
class Denoise(Classify):
    """An objective whose decoder may be tied to the body's word embeddings."""

    name: str = "denoise"

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.cross_entropy(head(features[:, 1]), targets["labels"], reduction="none")
        return RowLosses(losses, torch.ones_like(losses))


@dataclass
class Step:
    model: TextModel
    end: Segment
    auxiliaries: list[Segment]
    dev: list[Batch]

    @property
    def body(self) -> list[nn.Parameter]:
        return list(self.model.body.parameters())

    def loss(self, segment: Segment) -> Tensor:
        return self.through(segment.task.head, segment.task, segment.batches)

    def through(self, head: nn.Module, task: Task, batches: Sequence[Batch]) -> Tensor:
        """The mean over all rows of all batches, worked out from the rows one by one."""
        losses = [
            task.losses(head, self.model.body(**batch.inputs), batch.targets).sums
            for batch in batches
        ]
        return torch.cat(losses).mean()


def batches(task: Task, rows: int, generator: torch.Generator) -> list[Batch]:
    """Rows in two batches of different size and width, where there are more than two."""
    sizes = [rows] if rows < 3 else [1, rows - 1]
    made = [task.batch(torch.arange(n), generator) for n in sizes]
    first = made[0]
    narrow = {name: value[:, :5] for name, value in first.inputs.items()}
    return [Batch(narrow, first.targets, first.rows), *made[1:]]


def make_step(folder: Path, *, tied: bool, coefficients: tuple[float, ...]) -> Step:
    model = tiny_text_model(folder, tied=tied)
    generator = torch.Generator().manual_seed(0)
    end = Classify(model.classifier)
    segments = [
        Segment(task, batches(task, 2 + i, generator), coefficient)
        for i, (task, coefficient) in enumerate(
            (Denoise(model.heads.language_model().double(), f"denoise-{i}"), c)
            for i, c in enumerate(coefficients[1:])
        )
    ]
    return Step(
        model,
        Segment(end, batches(end, 5, generator), coefficients[0]),
        segments,
        batches(end, 6, generator),
    )


def flat_gradient(loss: Tensor, parameters: list[nn.Parameter]) -> Tensor:
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).flatten()
            for p, g in zip(parameters, gradients, strict=True)
        ]
    )


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("coefficients", [(0.5, 0.3, 0.2), (0.0, 1.0, 0.0), (1.0,)])
def test_signals_and_gradients_equal_autograd(
    tmp_path: Path, tied: bool, coefficients: tuple[float, ...]
) -> None:
    """Cosine, dot and norm of every task, of the auxiliary sum, and every ``.grad``, to 1e-9."""
    step = make_step(tmp_path, tied=tied, coefficients=coefficients)
    dev_head: DevHead = EndTaskHead()
    dev_loss = step.through(step.end.task.head, step.end.task, step.dev)
    v = flat_gradient(dev_loss, step.body)
    segments = [*step.auxiliaries, step.end]
    gradients = {s.task.name: flat_gradient(step.loss(s), step.body) for s in segments}
    expected_total = sum(s.coefficient * step.loss(s) for s in segments)
    assert isinstance(expected_total, Tensor)
    heads = [p for s in segments for p in s.task.head.parameters()]
    everything = list(dict.fromkeys([*step.body, *heads]))
    expected_grads = torch.autograd.grad(expected_total, everything, allow_unused=True)

    statistics = StreamEngine(step.model.body, dev_head).step(step.end, step.auxiliaries, step.dev)

    assert statistics is not None
    signals = statistics.read(SIGNALS)
    assert signals.dev_norm == pytest.approx(v.norm().item(), rel=1e-9)
    for name, g in gradients.items():
        assert signals.dot[name] == pytest.approx((g @ v).item(), rel=1e-9)
        assert signals.norm[name] == pytest.approx(g.norm().item(), rel=1e-9)
        cosine = (g @ v / (g.norm() * v.norm())).item()
        assert signals.cosine[name] == pytest.approx(cosine, rel=1e-9)
    if step.auxiliaries:
        weight = sum(s.coefficient for s in step.auxiliaries)
        mixed = sum(s.coefficient * gradients[s.task.name] for s in step.auxiliaries) / weight
        assert isinstance(mixed, Tensor)
        assert signals.auxiliary["dot"] == pytest.approx((mixed @ v).item(), rel=1e-9)
        assert signals.auxiliary["norm"] == pytest.approx(mixed.norm().item(), rel=1e-9)
    for parameter, expected in zip(everything, expected_grads, strict=True):
        if expected is None:
            assert parameter.grad is None
        elif parameter.grad is None:
            assert not expected.any(), "only tasks with coefficient zero reach it"
        else:
            torch.testing.assert_close(parameter.grad, expected, rtol=1e-9, atol=1e-15)


def test_tied_embeddings_count_once_and_whole(tmp_path: Path) -> None:
    """The word embeddings' gradient is the sum over both of its uses."""
    step = make_step(tmp_path, tied=True, coefficients=(0.5, 0.5))
    embeddings = step.model.body.base.get_input_embeddings().weight
    decoder = step.auxiliaries[0].task.head.head.model.get_output_embeddings().weight
    assert embeddings is decoder
    whole = flat_gradient(step.loss(step.auxiliaries[0]), step.body).norm().item()
    statistics = StreamEngine(step.model.body, EndTaskHead()).step(
        step.end, step.auxiliaries, step.dev
    )
    assert statistics is not None
    assert statistics.read(SIGNALS).norm["denoise-0"] == pytest.approx(whole, rel=1e-9)


def test_without_signals_there_is_no_dev_pass_and_the_gradient_is_the_same(tmp_path: Path) -> None:
    """Plain multitask training: one body pass a task, nothing measured and no gradient hooked."""
    step = make_step(tmp_path, tied=True, coefficients=(0.4, 0.6))
    passes: list[int] = []
    step.model.body.register_forward_hook(lambda *_: passes.append(1))
    engine = StreamEngine(step.model.body, EndTaskHead())
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Tensor, "register_post_accumulate_grad_hook")
        assert engine.step(step.end, step.auxiliaries, None) is None
    assert len(passes) == 3, "the end task's rows are in two batches"
    plain = [p.grad.clone() for p in step.body if p.grad is not None]
    step.model.body.zero_grad()
    engine.step(step.end, step.auxiliaries, step.dev)
    assert len(passes) == 3 + 5
    measured = [p.grad for p in step.body if p.grad is not None]
    torch.testing.assert_close(plain, measured, rtol=1e-9, atol=1e-15)


def test_fresh_dev_head_fits_the_features_and_leaves_no_trace(tmp_path: Path) -> None:
    """φ* does better on its rows than a head of its initialisation, θ and φ’ do not change."""
    step = make_step(tmp_path, tied=True, coefficients=(1.0,))
    task = step.end.task
    before = [p.clone() for p in (*step.body, *task.head.parameters())]
    features = [step.model.body(**batch.inputs).detach() for batch in step.end.batches]
    short = FreshDevHead(torch.Generator().manual_seed(0), iterations=1)
    long = FreshDevHead(torch.Generator().manual_seed(0), iterations=50)
    first, fitted = (h.fit(task, features, step.end.batches) for h in (short, long))
    loss = [step.through(h, task, step.end.batches).item() for h in (first, fitted)]
    assert loss[1] < 0.5 * loss[0]
    after = [*step.body, *task.head.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(p.grad is None for p in after)


def test_a_gradient_of_zero_has_cosine_zero(tmp_path: Path) -> None:
    """A task whose rows have no target measures zero, not NaN."""
    step = make_step(tmp_path, tied=True, coefficients=(0.5, 0.5))

    class Untouched(Denoise):
        def losses(
            self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]
        ) -> RowLosses:
            return RowLosses(features.sum(dim=(1, 2)) * 0.0, torch.zeros(len(features)))

    empty = Segment(Untouched(nn.Identity(), "empty"), step.auxiliaries[0].batches, 0.5)
    statistics = StreamEngine(step.model.body, EndTaskHead()).step(step.end, [empty], step.dev)
    assert statistics is not None
    signals = statistics.read(SIGNALS)
    assert signals.cosine["empty"] == 0.0
    assert signals.auxiliary["cosine"] == 0.0
