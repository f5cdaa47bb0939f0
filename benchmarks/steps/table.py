"""Measured cells as Markdown tables."""

from collections.abc import Mapping
from typing import Any

import click


def print_tables(cells: Mapping[str, Mapping[str, Mapping[str, Any]]], what: str) -> None:
    """One row a cell, one column a way; what plain and floor cost, the others relative to them."""
    measured = {
        name: {way: values[what] for way, values in cell.items() if what in values}
        for name, cell in cells.items()
    }
    measured = {name: cell for name, cell in measured.items() if cell}
    ways = list(dict.fromkeys(way for cell in measured.values() for way in cell))
    click.echo(f"| {what} | " + " | ".join(ways) + " |")
    click.echo("|---|" + "---|" * len(ways))
    for name, cell in measured.items():
        base = _number(cell.get("floor"))
        columns = [_cell(way, cell.get(way), base) for way in ways]
        click.echo(f"| {name} | " + " | ".join(columns) + " |")


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        return float(value["cpu_seconds"])
    return None if value is None else float(value)


def _cell(way: str, value: Any, base: float | None) -> str:
    number = _number(value)
    if number is None:
        return "–"
    if isinstance(value, Mapping):
        shown = f"{number:.2f} s ({value['wall_seconds']:.2f} s)"
    else:
        shown = f"{number / 1e9:.4g} G"
    return shown if base is None or way == "floor" else f"{shown}, {number / base:.3f}×"
