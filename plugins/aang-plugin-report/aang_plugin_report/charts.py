"""Charts as data, independent of how they are drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """One curve.

    Attributes:
        name: its name in the legend.
        x: horizontal coordinates.
        y: vertical coordinates, one for each x.
        points: whether to draw single points instead of a line.
        intervals: the ends of an interval around each y, drawn as a bar; none if empty.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    points: bool = False
    intervals: Sequence[tuple[float, float]] = ()

    @property
    def bars(self) -> tuple[list[float], list[float]] | None:
        """How far the intervals reach below each y, and above it; None without intervals."""
        return _reach(self.y, self.intervals) if self.intervals else None


@dataclass(frozen=True)
class Point:
    """One point.

    Attributes:
        name: what it stands for.
        x: its horizontal coordinate, and half of its error bar.
        y: its vertical coordinate, and half of its error bar.
    """

    name: str
    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The fields of every chart.

    Attributes:
        key: name of the chart in files and commands.
        title: title of the chart.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        alt: the chart in words, for readers who cannot see it.
    """

    key: str
    title: str
    x_label: str = "step"
    y_label: str = ""
    alt: str

    @property
    def rows(self) -> int:
        """The number of names on its left side."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Lines(Chart):
    """Curves over a common axis.

    Attributes:
        series: the curves.
        mark: place and label of a vertical line; None for no line.
        y_range: ends of the vertical axis; None to fit the curves.
        x_log: whether the horizontal axis is logarithmic.
    """

    series: Sequence[Series]
    mark: tuple[float, str] | None = None
    y_range: tuple[float, float] | None = None
    x_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Points(Chart):
    """Points with error bars.

    Attributes:
        groups: the points of each group, by its name in the legend.
    """

    groups: Mapping[str, Sequence[Point]]


@dataclass(frozen=True, kw_only=True)
class Bars(Chart):
    """Horizontal bars.

    Attributes:
        labels: names of the bars.
        groups: name and values of each group of bars, with one value for each label.
        spread: half of each bar's error bar, the same in every group; empty for no error bars.
    """

    labels: Sequence[str]
    groups: Sequence[tuple[str, Sequence[float]]]
    spread: Sequence[float] = ()

    @property
    def rows(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class Intervals(Chart):
    """A dot for each name on the left side, on its interval.

    Attributes:
        labels: the names.
        values: where the dots are.
        ends: the ends of the intervals.
    """

    labels: Sequence[str]
    values: Sequence[float]
    ends: Sequence[tuple[float, float]]

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def bars(self) -> tuple[list[float], list[float]]:
        """How far the intervals reach below each value, and above it."""
        return _reach(self.values, self.ends)


@dataclass(frozen=True, kw_only=True)
class Heat(Chart):
    """A heat map.

    Attributes:
        x: names of the columns.
        y: names of the rows.
        z: ``[len(y)][len(x)]``, the values; None for missing ones.
        diverging: whether zero is the middle of the colour scale.
        written: whether to write the values into the cells.
    """

    x: Sequence[str]
    y: Sequence[str]
    z: Sequence[Sequence[float | None]]
    diverging: bool = False
    written: bool = False

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def largest(self) -> float:
        """The largest value, whatever its sign."""
        return max((abs(v) for row in self.z for v in row if v is not None), default=1.0)


MOST_WRITTEN = 20
"""Counts are written into a confusion matrix up to this many classes; more are illegible."""


def confusion(
    key: str, title: str, classes: Sequence[str], counts: Sequence[Sequence[int]], what: str
) -> Heat:
    """The heat map of a confusion matrix.

    Args:
        key: see :class:`Chart`.
        title: see :class:`Chart`.
        classes: the names of the C classes.
        counts: ``[C][C]``, the number of examples by true and predicted class.
        what: follows "7 of 9" in the description: ``test examples are classified correctly``.
    """
    right = sum(row[i] for i, row in enumerate(counts))
    return Heat(
        key=key,
        title=title,
        x_label="predicted",
        y_label="true",
        x=classes,
        y=classes,
        z=counts,
        written=len(classes) <= MOST_WRITTEN,
        alt=f"{right} of {sum(map(sum, counts))} {what}.",
    )


def _reach(
    values: Sequence[float], ends: Sequence[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    pairs = list(zip(values, ends, strict=True))
    return [value - low for value, (low, _) in pairs], [high - value for value, (_, high) in pairs]
