"""The weighter a-gem: Chaudhry et al., Efficient Lifelong Learning with A-GEM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aang_core import (
    RegisterPrimitive,
    TaskCard,
    Weighter,
    Workbench,
    hookimpl,
    sample_size_option,
)

AANG_PLUGIN_API = 1


class AGem(Weighter):
    """The objectives' summed gradient never points against the end task's.

    Where it does, its part along the end task's gradient is taken away (equation 11). There the
    reference is the loss on earlier tasks, here it is the end task.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        n: number of objectives that a step trains; None for all of them.
    """

    def __init__(
        self, end_task: TaskCard, auxiliaries: Sequence[TaskCard], *, n: int | None = None
    ) -> None:
        self._names = [end_task.name, *(card.name for card in auxiliaries)]
        self._sample_size = sample_size_option(n, auxiliaries)

    def round(self, bench: Workbench) -> None:
        gradients = bench.gradients([bench.end_task, *bench.sample(self._sample_size)])
        if gradients is None:  # not finite: the step is skipped
            return
        (reference, *against), *_ = bench.dots(gradients)
        conflict = min(sum(against), 0.0)
        even = [1 / len(gradients)] * len(gradients)
        taken = conflict / reference if reference > 0 else 0.0
        bench.descend(gradients, [even[0] * (1 - taken), *even[1:]], of_heads=even)

    def weights(self) -> Mapping[str, float]:
        return dict.fromkeys(self._names, 1 / len(self._names))


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register the weighter."""
    register("a-gem", "objectives never pull against the end task", AGem)
