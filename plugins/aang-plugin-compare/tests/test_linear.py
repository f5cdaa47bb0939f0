"""The linear models behind the quick controls, for each kind of end task."""

import pytest
import torch
from aang_plugin_compare.linear import LINEAR, labels_of

from aang_core import Example, ReadReport
from aang_core.corpora import LabelledTask
from aang_core.task_types.multi_label import MultiLabel
from aang_core.task_types.regression import Regression
from aang_core.task_types.single_label import SingleLabel
from aang_core.task_types.task_type import TaskType

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)).numpy()
LABELS = {
    "single-label": (SingleLabel(), ["up" if x[0] > 0 else "down" for x in X]),
    "multi-label": (
        MultiLabel(),
        [tuple(n for n, v in zip("abc", x, strict=True) if v > 0) for x in X],
    ),
    "regression": (Regression(), [float(50 + 9 * x[0] - x[1]) for x in X]),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_is_learned(name: str) -> None:
    unfitted, labels = LABELS[name]
    kind: TaskType = unfitted.fitted(labels, "train", "--label", ReadReport())  # type: ignore[arg-type]
    examples = tuple(Example("x", label=label) for label in labels)
    task = LabelledTask("made", examples, (), (), kind.labels, of_type=kind)
    truth = labels_of(task, examples)
    model = LINEAR[name](X[:40], truth[:40], 100.0)
    assert kind.scores(truth[40:], model(X[40:]))[kind.metrics[0]] > 0.8
