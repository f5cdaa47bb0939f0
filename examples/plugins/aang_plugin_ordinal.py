"""A kind of end task: classes in an order, with soft labels (Díaz and Marathe, CVPR 2019).

aang --plugin aang_plugin_ordinal.py train --train grades.csv --task-type ordinal
"""

from dataclasses import dataclass, replace

import torch
from aang.task_types import SingleLabel, TaskType, number
from torch.nn.functional import cross_entropy, one_hot

from aang_core import DataError, RowLosses, hookimpl


@dataclass(frozen=True)
class Ordinal(SingleLabel):
    """Classes that are numbers; a prediction is as wrong as it is far away."""

    name = "ordinal"
    model = "A model that grades texts"
    metrics = ("kappa", "accuracy")
    linear = None

    # In a saved model, and one score after the other in resamples.
    of_model = classmethod(TaskType.of_model.__func__)
    finish = TaskType.finish
    resampled = TaskType.resampled

    def fitted(self, labels, source, option, report):
        found = super().fitted(labels, source, option, report)
        if None in map(number, found.labels):
            raise DataError(f"{source}: grades are numbers; does {option} name the right column?")
        return replace(found, labels=tuple(sorted(found.labels, key=float)))

    def losses(self, logits, labels):
        grades = torch.arange(logits.shape[1], device=logits.device)
        targets = (-(grades - labels.unsqueeze(1)).abs().float()).softmax(dim=1)
        known = (labels < len(grades)).float()
        losses = cross_entropy(logits.float(), targets, reduction="none")
        return RowLosses(known * losses, known)

    def scores(self, labels, logits):
        truth, found = labels.double(), logits.argmax(dim=1).double()
        apart = (truth.mean() - found.mean()) ** 2
        apart += truth.var(correction=0) + found.var(correction=0)
        agree = 1 - (truth - found).square().mean() / apart.clamp(min=1e-12)
        return {"kappa": float(agree), "accuracy": float((truth == found).double().mean())}

    def baseline_scores(self, train, labels):
        logits = one_hot(train.mode().values, len(self.labels)).float()
        return self.scores(labels, logits.expand(len(labels), -1))


@hookimpl
def aang_register_task_types(register):
    register("ordinal", "a grade, near others or far from them", Ordinal)
