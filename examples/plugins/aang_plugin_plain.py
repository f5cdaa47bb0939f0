"""A gradient engine: one gradient after the other, with the numbers of the engine `stream`.

aang --plugin aang_plugin_plain.py train --gradients plain
"""

import torch

from aang_core import RowLosses, hookimpl
from aang_core.gradients import (
    ALONE,
    Passes,
    assemble_statistics,
    mean_gradient,
    members_of,
    rider_loss,
    trained,
)


class Plain:
    """Keeps a whole gradient of each task, which takes more memory than `stream`."""

    cannot = {"task_clip": "takes gradients as they are, which {} shortens"}
    splits_rows = True
    processes = ALONE

    def __init__(self, body, dev_head, settings, at_once):
        self.dev_head = dev_head
        self.passes = Passes(body, settings.precision)
        self.scale = self.passes.scale
        self.losses = []

    def limit_rows(self, rows):
        """Batches become smaller by themselves."""

    def step(self, end, auxiliaries, dev, *, norms=False):
        members, theta = members_of([*auxiliaries, end]), self.passes.trained()
        of_end, v = [self.passes.features(batch) for batch in end.batches], {}
        if dev is not None:
            fitted_to = self.passes.dev_features(of_end)
            head = self.dev_head.fit(end.task, fitted_to, end.batches)
            v = self.dev_head.smoothed(mean_gradient(self.passes, end.task, head, dev, theta)[0])
        total, self.losses, dots, squares = {}, [], [], []
        for segment in [*auxiliaries, end]:
            features = of_end
            if segment is not end:
                features = [self.passes.features(batch) for batch in segment.batches]
            if segment.remember:
                self.dev_head.observe(self.passes.dev_features(features), segment.batches)
            for member in segment.members:
                if member is end:
                    of_auxiliaries = inner(total, total, theta)
                loss = self.loss(member, features)
                found = self.gradient(loss, trained(self.passes.body, member.task.head))
                self.losses.append(loss.detach())
                dots.append(inner(found, v, theta))
                squares.append(inner(found, found, theta))
                for p, gradient in found.items() if member.coefficient else ():
                    total[p] = total.get(p, 0) + member.coefficient * gradient
        for p, gradient in total.items():
            p.grad = gradient
        if dev is None and not norms:
            return None
        return assemble_statistics(
            [member.task.name for member in members],
            [member.coefficient for member in members[:-1]],
            dots=torch.stack(dots),
            squares=torch.stack(squares),
            auxiliary_square=of_auxiliaries,
            dev_square=inner(v, v, theta),
        )

    def loss(self, member, features):
        if not hasattr(member, "batches"):
            return rider_loss(self.passes, member, features)
        task, pairs = member.task, zip(features, member.batches, strict=True)
        parts = [self.passes.losses(task, task.head, seen, batch) for seen, batch in pairs]
        return RowLosses.pool(parts).mean()

    def gradient(self, loss, parameters):
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(parameters, found, strict=True)
        return {p: self.scale.off(gradient) for p, gradient in pairs if gradient is not None}


def inner(a, b, parameters):
    products = [(a[p] * b[p]).sum() for p in parameters if p in a and p in b]
    return torch.stack(products).sum() if products else parameters[0].new_zeros(())


@hookimpl
def aang_register_engines(register):
    register("plain", "one gradient after the other", Plain)
