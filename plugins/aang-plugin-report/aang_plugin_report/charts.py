"""Charts as data, independent of how they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """One curve.

    Attributes:
        name: its name in the legend.
        x: horizontal coordinates.
        y: vertical coordinates, as many.
        points: whether to draw single points instead of a line.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    points: bool = False


@dataclass(frozen=True)
class Lines:
    """Curves over a common axis.

    Attributes:
        key: name of the chart in files and commands.
        title: title of the chart.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        series: the curves.
        alt: the chart in words, for readers who cannot see it.
        mark: place and label of a vertical line; None for no line.
        y_range: ends of the vertical axis; None to fit the curves.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    alt: str
    mark: tuple[float, str] | None = None
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """Horizontal bars.

    Attributes:
        key: name of the chart in files and commands.
        title: title of the chart.
        x_label: label of the horizontal axis.
        labels: names of the bars.
        groups: name and values of each group of bars, with one value for each label.
        alt: the chart in words, for readers who cannot see it.
    """

    key: str
    title: str
    x_label: str
    labels: Sequence[str]
    groups: Sequence[tuple[str, Sequence[float]]]
    alt: str


@dataclass(frozen=True)
class Heat:
    """A heat map.

    Attributes:
        key: name of the chart in files and commands.
        title: title of the chart.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        x: names of the columns.
        y: names of the rows.
        z: ``[len(y)][len(x)]``, the values; None for missing ones.
        alt: the chart in words, for readers who cannot see it.
        diverging: whether zero is the middle of the colour scale.
        written: whether to write the values into the cells.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    y: Sequence[str]
    z: Sequence[Sequence[float | None]]
    alt: str
    diverging: bool = False
    written: bool = False


Chart = Lines | Bars | Heat
