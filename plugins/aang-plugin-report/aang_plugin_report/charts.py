"""Charts as data: what is shown, before anything draws it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """One curve; ``points`` marks its values instead of joining them."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    points: bool = False


@dataclass(frozen=True)
class Lines:
    """Curves over one axis.

    mark: a vertical line at this place, with a word to it.
    alt: the chart in words, for those who do not see it.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    alt: str
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class Bars:
    """Named values side by side; ``groups`` holds as many values each as there are ``labels``."""

    key: str
    title: str
    x_label: str
    labels: Sequence[str]
    groups: Sequence[tuple[str, Sequence[float]]]
    alt: str


@dataclass(frozen=True)
class Heat:
    """A value for each place of a grid, rows of ``z`` by ``y``; None where there is none.

    diverging: whether zero is the middle of the colours.
    written: whether the values stand in their places as well.
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
