"""How well the signals that weighters follow stand out from noise, on a real run.

A weighter follows the cosine of an objective's gradient with the dev gradient, measured on a few
rows per step. Here that cosine is measured many times during a training, in several ways from the
same gradients. Each way is judged by its t (mean over standard error) and by how well its ranking
of objectives agrees with the dev scores of training on each objective alone.
"""

from benchmarks.signal_quality.agreement import (
    Agreement,
    agreements,
    read_scores,
    scores_of,
)
from benchmarks.signal_quality.figures import ObjectiveQuality, SignalQuality
from benchmarks.signal_quality.measuring import QualityPlan, measure_signal_quality

__all__ = [
    "Agreement",
    "ObjectiveQuality",
    "QualityPlan",
    "SignalQuality",
    "agreements",
    "measure_signal_quality",
    "read_scores",
    "scores_of",
]
