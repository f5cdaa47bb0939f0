"""How close objectives are to the end task."""

from collections.abc import Mapping

# Private: through the command, gradients are those of an encoder, which no test works out by hand.
from aang_plugin_diagnose.objectives import _compared, _Known
from aang_plugin_diagnose.objectives import smoothness as smoothness
from torch import Tensor, nn

from benchmarks.signal_quality import (
    ObjectiveQuality,
    SignalQuality,
    agreements,
    read_scores,
    scores_of,
)
from benchmarks.signal_quality.calibrated import Calibrated
from benchmarks.signal_quality.cosines import Reference, Sample
from benchmarks.signal_quality.figures import Figure


def compared(
    gradient: Mapping[nn.Parameter, Tensor],
    dev: Mapping[nn.Parameter, Tensor],
    end: Mapping[nn.Parameter, Tensor],
) -> tuple[float, float, float]:
    """The cosine of a gradient with that of dev, its norm, and its distance from the end task's."""
    return _compared(gradient, _Known.of(dev), _Known.of(end))
