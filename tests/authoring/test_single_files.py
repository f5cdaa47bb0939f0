"""The plug-ins in ``examples/plugins`` that are a single file each."""

import sys
from types import ModuleType

import pytest
import torch
from aang_testing import (
    VOCABULARY,
    RecordingWorkbench,
    check_representation,
    check_weighter,
)
from torch import nn

from aang_core import ReadReport, ShownRows, TaskCard, TensorTask, load_plugins
from tests.authoring.installation import EXAMPLES
from tests.support.gradients import EndTaskHead, EngineSettings, Segment, StreamEngine

FOLDER = EXAMPLES[0].parent
FILES = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The plug-in of the given name, imported."""
    name = f"aang_plugin_{request.param}"
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__(name)


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("module", [name], indirect=True)


def test_they_load_and_are_under_80_lines() -> None:
    assert len(FILES) == 5
    plugins = load_plugins(local=map(str, FILES), environ={})
    assert not plugins.failed
    for file in FILES:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) < 85, file


@of("sentences")
def test_tokens_see_their_own_sentence(module: ModuleType) -> None:
    """Id 4 reads " the", 5 " Paris" and 13 ".", so there are two sentences."""
    check_representation(module.OwnSentence(), provides=("sentence-representation",))
    ids = torch.tensor([[1, 4, 13, 5, 2, 0]])
    rows = ShownRows(ids, real=ids > 0, ordinary=ids > 3, vocabulary=VOCABULARY)
    sees = module.OwnSentence().of_text(rows, torch.Generator())
    assert sees[0, :5].int().tolist() == [
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 1, 0],
    ]


@of("duel")
def test_both_are_tried_for_as_many_steps(module: ModuleType) -> None:
    check_weighter(module.Duel)
    bench = RecordingWorkbench("end", ["a"], steps=7)
    module.Duel(TaskCard("end"), [TaskCard("a")]).round(bench)
    assert bench.trials == [{"end": 1.0}, {"end": 0.5, "a": 0.5}]
    assert bench.trial_steps == [3, 3]
    assert len(bench.applied) == 1


@of("ordinal")
def test_grades_have_an_order(module: ModuleType) -> None:
    """A near grade costs less than a far one, one that train lacks costs nothing."""
    grades = module.Ordinal().fitted(["5", "10", "1"], "train", "--label", ReadReport())
    assert grades.labels == ("1", "5", "10")
    near, far = grades.losses(torch.tensor([[0.0, 5, 0], [5, 0, 0]]), torch.tensor([2, 2])).sums
    assert near < far
    losses = grades.losses(torch.zeros(2, 3), torch.tensor([0, 3]))
    assert losses.sums[1] == 0
    assert losses.counts.tolist() == [1, 0]
    assert grades.scores(torch.tensor([0, 1, 2]), torch.eye(3))["kappa"] == 1
    assert grades.scores(torch.tensor([2, 1, 0]), torch.eye(3))["kappa"] == -1


@of("plain")
def test_an_engine_has_the_numbers_of_stream(module: ModuleType) -> None:
    torch.manual_seed(0)
    body = nn.Linear(3, 4)
    loss = nn.CrossEntropyLoss(reduction="none")
    tasks = [
        TensorTask(name, nn.Linear(4, 2), {"input": torch.randn(8, 3)}, torch.arange(8) % 2, loss)
        for name in ("a", "b", "end")
    ]
    rows = [task.batch(torch.arange(8), torch.Generator()) for task in tasks]
    of_step = zip(tasks, rows, (0.0, 0.3, 0.7), strict=True)
    a, b, end = (Segment(task, [batch], c) for task, batch, c in of_step)
    results = []
    for engine in (
        StreamEngine(body, EndTaskHead()),
        module.Plain(body, EndTaskHead(), EngineSettings(), None),
    ):
        body.zero_grad()
        found = engine.step(end, [a, b], rows[-1:])
        results.append([body.weight.grad, found.values(), torch.stack(list(engine.losses))])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
