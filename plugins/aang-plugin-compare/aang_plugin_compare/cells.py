"""The runs of a comparison, as they are planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aang.config import TrainConfig

from aang_plugin_compare.matching import Match


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Attributes:
        task: the task.
        method: the method.
        seed: the seed.
        config: its options, without what ``match`` adds.
        choice: its place in the grid, from 0; None without a grid.
        setting: the options that the grid sets, as text for people.
        match: the run whose compute or seconds it gets; None for other methods.
    """

    task: str
    method: str
    seed: int
    config: TrainConfig
    choice: int | None = None
    setting: str = ""
    match: Match | None = None

    @property
    def folder(self) -> Path:
        """The run folder, relative to the folder of the comparison."""
        chosen = () if self.choice is None else (f"grid-{self.choice}",)
        return Path("runs", self.task, self.method, *chosen, f"seed-{self.seed}")


@dataclass(frozen=True)
class Comparison:
    """A planned comparison.

    Attributes:
        tasks: names of the tasks.
        methods: names of the methods.
        baseline: the method that the others are tested against; None for no tests.
        cells: all runs.
        left_out: folders of runs that count as unfinished, and files of controls that do not count,
            relative to the folder of the comparison.
    """

    tasks: Sequence[str]
    methods: Sequence[str]
    baseline: str | None
    cells: Sequence[Cell]
    left_out: frozenset[Path] = frozenset()

    def leading(self) -> list[Cell]:
        """One run for each task and seed, of the baseline or else of the first method.

        Quick controls have its data and its encoder.
        """
        method = self.baseline or self.methods[0]
        first = {(c.task, c.seed): c for c in reversed(self.cells) if c.method == method}
        return [first[key] for key in sorted(first, key=lambda k: (self.tasks.index(k[0]), k[1]))]

    def finished(self, root: Path) -> list[Cell]:
        """The runs that have finished and count.

        Args:
            root: the folder of the comparison.
        """
        return [
            cell
            for cell in self.cells
            if cell.folder not in self.left_out and (root / cell.folder / "result.json").is_file()
        ]
