"""The columns of a labelled data set, by the options that name them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aang.corpora.text_files import well_formed_value
from aang.task_types.cells import Cell
from aang_core.errors import ConfigError, DataError
from aang_core.objectives.stages.data import ReadReport

_SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read.

    Attributes:
        text: column of the text.
        text_pair: column of the second text; None for tasks over single texts.
        label: column of the label.
        task: name of the auxiliary task that the columns belong to; None for the end task.
    """

    text: str = "text"
    text_pair: str | None = None
    label: str = "label"
    task: str | None = None

    def texts(self) -> tuple[str, ...]:
        """The columns of texts."""
        return (self.text,) if self.text_pair is None else (self.text, self.text_pair)

    def names(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.texts(), self.label)

    def require_different(self) -> None:
        """Raise ConfigError if one column has two roles."""
        if self.label in self.texts():
            raise ConfigError(
                f"{self.option('label')} {self.label} is a column of texts, too; a text that is "
                "its own label teaches nothing"
            )
        if self.text == self.text_pair:
            raise ConfigError(
                f"{self.option('text')} and {self.option('text_pair')} both name the column "
                f"{self.text}"
            )

    def options(self) -> dict[str, Any]:
        """The columns as options of a data primitive."""
        return {"text": self.text, "text_pair": self.text_pair, "label": self.label}

    def option(self, role: str) -> str:
        """The option that names the column in this role: ``--label``, or ``--set wnli.label``."""
        return f"--{role.replace('_', '-')}" if self.task is None else f"--set {self.task}.{role}"

    def cell(self, values: Mapping[str, object], name: str, where: str, report: ReadReport) -> Cell:
        """The value of a row in the column ``name``, with its place."""
        value = well_formed_value(values[name])
        if name != self.label and value != values[name] and isinstance(value, str | list):
            report.add("text with half a surrogate pair, replaced by U+FFFD", where)
        if name != self.label and _is_quoted_as_csv(value):
            report.add(
                'text in quotes with "" inside, kept as it is; if these are the quotes of CSV in a '
                "file with tabs, save it as .csv or .jsonl",
                where,
            )
        return Cell(value, name, where, self._option_of(name))

    def require(self, present: Iterable[str], wanted: Iterable[str], where: str) -> None:
        """Raise DataError if a column is missing.

        Args:
            present: the columns that are there.
            wanted: the columns that must be there.
            where: what messages call the place.
        """
        present = list(present)
        for name in wanted:
            if name not in present:
                found = ", ".join(map(repr, present[:20])) or "none"
                marks = [mark for mark in _SEPARATORS if present and mark in present[0]]
                if len(present) == 1 and marks:
                    raise DataError(
                        f"{where}: the header is one column, {found}, because its names are "
                        f"separated by {_SEPARATORS[marks[0]]}. AANG reads commas in .csv files "
                        "and tabs in .tsv files: export the file so, or name the separator in a "
                        "first line such as sep=;"
                    )
                raise DataError(
                    f"{where}: there is no column {name!r}; the columns are {found}. "
                    f"Name the right one with {self._option_of(name)}."
                )

    def _option_of(self, name: str) -> str:
        roles = {self.text_pair: "text_pair", self.text: "text", self.label: "label"}
        return self.option(roles[name])


def _is_quoted_as_csv(value: object) -> bool:
    """Whether a text is written as CSV writes quotes: all of it in quotes, those inside doubled.

    pandas writes TSV so, too, where AANG takes quotes for a part of the text.
    """
    if not isinstance(value, str) or len(value) < 4 or not value[0] == value[-1] == '"':
        return False
    return '""' in value[1:-1] and '"' not in value[1:-1].replace('""', "")
