"""The cosine of an objective's gradient with the dev gradient, computed in several ways."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

Gradient = Mapping[nn.Parameter, Tensor]


@dataclass(frozen=True)
class Reference:
    """What the gradients of one measurement are compared with.

    Attributes:
        dev: dev gradients by the name of their variant.
        base: the variant whose dev gradient the others below start from.
        moments: bias-corrected mean square of the training's gradients in Adam, by parameter, for
            the variant ``adam-step``; empty leaves that variant out.
        beta: Adam's decay of that mean.
        end_task: a running mean of g_E, for ``beyond-end-task``; empty leaves that variant out.
    """

    dev: Mapping[str, Gradient]
    base: str
    moments: Gradient = field(default_factory=dict)
    beta: float = 0.98
    end_task: Gradient = field(default_factory=dict)

    def cosines(self, g: Gradient) -> dict[str, float]:
        """cos(g, v) by variant; the cosine of a zero gradient is zero.

        ``adam-step`` is cos(d, v), where d is the step that Adam takes if its next gradient is g,
        scaled to the usual length: d_i = g_i / √(β s_i + (1 − β) g_i²), with ‖g‖² = Σ_i s_i.
        ``beyond-end-task`` is the cosine with v minus its projection on the mean of g_E.
        """
        v, mean = self.dev[self.base], self.end_task
        found = {name: cosine(dot(g, u), dot(g, g), dot(u, u)) for name, u in self.dev.items()}
        if self.moments:
            step = self._adam_step(g)
            found[ADAM] = cosine(dot(step, v), dot(step, step), dot(v, v))
        if mean:
            square = dot(mean, mean)
            along = dot(v, mean) / square if square else 0.0
            rest = dot(v, v) - along**2 * square
            found[BEYOND] = cosine(dot(g, v) - along * dot(g, mean), dot(g, g), rest)
        return found

    def _adam_step(self, g: Gradient) -> Gradient:
        square = dot(g, g)
        if not square:
            return {}
        usual = float(torch.stack([s.double().sum() for s in self.moments.values()]).sum())
        step = {}
        for parameter, part in g.items():
            if parameter in self.moments:
                scaled = part * math.sqrt(usual / square)
                mean = self.beta * self.moments[parameter] + (1 - self.beta) * scaled.square()
                step[parameter] = scaled / mean.sqrt_().add_(_EPSILON)
        return step


_EPSILON = 1e-8
"""Adam's ε, as in training."""

ADAM = "adam-step"
BEYOND = "beyond-end-task"


@dataclass(frozen=True)
class Sample:
    """One objective at one point of a run, from two gradients on different rows.

    Attributes:
        cosines: by variant, the mean of the two.
        shared: ⟨g_a, g_b⟩. The noise of two batches is independent, so its mean is ‖E g‖².
        square: (‖g_a‖² + ‖g_b‖²) / 2, the square of the signal plus that of the noise.
    """

    cosines: Mapping[str, float]
    shared: float
    square: float

    @classmethod
    def of(cls, reference: Reference, pair: Sequence[Gradient]) -> "Sample":
        """The sample of the gradients of two batches of one objective."""
        one, other = (reference.cosines(g) for g in pair)
        return cls(
            {name: (one[name] + other[name]) / 2 for name in one},
            dot(*pair),
            (dot(pair[0], pair[0]) + dot(pair[1], pair[1])) / 2,
        )


def cosine(product: float, one: float, other: float) -> float:
    """The cosine of a and b, from ⟨a, b⟩, ‖a‖² and ‖b‖²."""
    length = math.sqrt(max(one, 0.0) * max(other, 0.0))
    return product / length if length else 0.0


def dot(a: Gradient, b: Gradient) -> float:
    """⟨a, b⟩, summed over parameters in double precision; a missing one counts as zero."""
    parts = [
        torch.dot(part.reshape(-1), b[p].reshape(-1)).double() for p, part in a.items() if p in b
    ]
    return float(torch.stack(parts).sum()) if parts else 0.0
