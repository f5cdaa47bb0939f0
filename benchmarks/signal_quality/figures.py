"""Results of a measurement of signals: mean and t by objective and variant."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.signal_quality.cosines import Sample

OWN_NOISE = "own-noise"
OWN_SPREAD = "own-spread"


@dataclass(frozen=True)
class Figure:
    """The value of one variant for one objective.

    Attributes:
        value: what objectives are ranked by: the mean cosine, or a number derived from it; None if
            unknown.
        t: the mean cosine over its standard error; None for a single sample, or without a spread.
        samples: number of samples.
    """

    value: float | None
    t: float | None
    samples: int

    @classmethod
    def of(cls, cosines: Sequence[float]) -> "Figure":
        """The mean of at least one cosine, and its t."""
        mean, count = statistics.fmean(cosines), len(cosines)
        spread = statistics.stdev(cosines) if count > 1 else 0.0
        return cls(mean, mean / (spread / math.sqrt(count)) if spread else None, count)


@dataclass(frozen=True)
class ObjectiveQuality:
    """The values of all variants for one objective.

    Attributes:
        name: the objective.
        reliability: ‖E g‖² / E ‖g‖², the share of a gradient's square that is not noise, at the
            measured number of rows; at most one, and below zero if there is only noise.
        figures: by variant.
    """

    name: str
    reliability: float
    figures: Mapping[str, Figure]

    @classmethod
    def of(cls, name: str, samples: Sequence[Sample], base: str) -> "ObjectiveQuality":
        """Compute all variants from the samples of at least one measurement.

        ``own-noise`` is the base's mean over the square root of the reliability, the cosine that E
        g itself would have with v; ``own-spread`` is the base's mean over its standard deviation.
        """
        square = sum(s.square for s in samples)
        reliability = sum(s.shared for s in samples) / square if square else 0.0
        names = dict.fromkeys(name for s in samples for name in s.cosines)
        figures = {
            variant: Figure.of([s.cosines[variant] for s in samples if variant in s.cosines])
            for variant in names
        }
        own = figures[base]
        assert own.value is not None
        noise = own.value / math.sqrt(reliability) if reliability > 0 else None
        spread = None if own.t is None else own.t / math.sqrt(own.samples)
        figures[OWN_NOISE] = Figure(noise, own.t, own.samples)
        figures[OWN_SPREAD] = Figure(spread, own.t, own.samples)
        return cls(name, reliability, figures)


@dataclass(frozen=True)
class SignalQuality:
    """The signals of the end task and of every objective, as measured during a run.

    Attributes:
        end_task: the end task's.
        objectives: those of the objectives.
        variants: names in the order of the table, with a description of each.
        base: the variant that training uses by default.
        steps: of the run.
        measured: the number of steps before each measurement.
    """

    end_task: ObjectiveQuality
    objectives: Sequence[ObjectiveQuality]
    variants: Mapping[str, str]
    base: str
    steps: int
    measured: Sequence[int]

    def lines(self) -> Iterator[dict[str, Any]]:
        """One mapping of JSON values for every objective and variant."""
        for objective in (self.end_task, *self.objectives):
            for variant in self.variants:
                figure = objective.figures.get(variant, Figure(None, None, 0))
                yield {
                    "objective": objective.name,
                    "variant": variant,
                    "value": figure.value,
                    "t": figure.t,
                    "samples": figure.samples,
                    "reliability": objective.reliability,
                }
