"""How close objectives are to the end task."""

from aang_core.diagnosis.objectives import _compared, _Known
from aang_core.diagnosis.signal_quality import (
    ObjectiveQuality,
    SignalQuality,
    agreements,
    read_scores,
    scores_of,
)
from aang_core.diagnosis.signal_quality.calibrated import Calibrated
from aang_core.diagnosis.signal_quality.cosines import Reference, Sample
from aang_core.diagnosis.signal_quality.figures import Figure
