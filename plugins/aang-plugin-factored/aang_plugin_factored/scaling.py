"""Multipliers of the objectives' losses: those of AANG's paper, or those of its code."""

import math
from collections.abc import Sequence

from aang_core import ConfigError, TaskCard, softmax
from aang_plugin_factored.factors import OWN, Factors

STAGES = ("representation", "data", "transform")
"""The stages by which the released code divides a batch's rows, in its order."""

OUTPUT = "output"


class ReleasedScaling:
    """The loss shares of the code that AANG's authors released, which differ from the paper's.

    The code gives each group of objectives that agree in data, transform and representation its own
    rows. A batch is divided among the sampled representations by the softmax of W_R, each part
    among the data of that representation by the softmax of W_D, and each of these among their
    transforms by the softmax of W_T, rounded up each time. All objectives of a group train on the
    group's rows. An objective's loss is multiplied by its group's share of the batch times the
    softmax, over all sampled objectives, of W_All + W_O alone. These products do not sum to one:
    with uniform factors they sum to 1/n if no two objectives share their rows. Over the samples
    from the space td the mean sum is 0.35 for n = 3 and 0.19 for n = 6, so with λ_e = 0.5 the end
    task has 0.74 and 0.84 of the loss.

    Args:
        objectives: all that may be sampled.
        factors: the factor vectors, read each time.
        rows: number of rows of a batch, of which parts are rounded up; 64 in the published runs of
            AANG-TD, whose 256 rows per step are four batches.

    Raises:
        ConfigError: an objective is not made of the four stages.
    """

    def __init__(self, objectives: Sequence[TaskCard], factors: Factors, rows: int) -> None:
        for card in objectives:
            missing = [stage for stage in (*STAGES, OUTPUT) if stage not in card.factors]
            if missing:
                raise ConfigError(
                    f"factored.scaling=released divides rows by stage, and {card.name!r} has no "
                    f"{' and no '.join(missing)}; leave the option out"
                )
        self._parts = {card.name: card.factors for card in objectives}
        self._factors = factors
        self._rows = rows

    def weights(self, sampled: Sequence[str]) -> dict[str, float]:
        """Multiplier of each sampled objective's loss, before 1 − λ_e; they sum to at most one."""
        logits = {
            name: self._factors.value(OWN, name)
            + self._factors.value(OUTPUT, self._parts[name][OUTPUT])
            for name in sampled
        }
        likelihoods = softmax(logits)
        return {name: self._share(name, sampled) * likelihoods[name] for name in sampled}

    def _share(self, objective: str, sampled: Sequence[str]) -> float:
        """The share of the batch that an objective's group has."""
        rows, alike = self._rows, list(sampled)
        for stage in STAGES:
            own = self._parts[objective][stage]
            primitives = dict.fromkeys(self._parts[name][stage] for name in alike)
            probability = softmax({p: self._factors.value(stage, p) for p in primitives})[own]
            # Rounding may lift 3 × (1/3) slightly above one, which must not add a row.
            rows = math.ceil(rows * probability - 1e-9)
            alike = [name for name in alike if self._parts[name][stage] == own]
        return rows / self._rows
