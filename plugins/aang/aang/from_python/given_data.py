"""Data in the arguments of a training, in place of the files that options name."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aang.assembly.labelled_tasks import end_task_columns
from aang.config import TrainConfig
from aang.corpora.columns import Columns
from aang.corpora.dataset_task import parts_of
from aang.corpora.in_memory import DOMAIN_TEXT, plain_list, require_one_type, table_in_memory
from aang.corpora.places import PARTS, REST
from aang.corpora.tables import TableInMemory
from aang.runs.resume import TEXTS, copy_of
from aang_core.errors import ConfigError
from aang_core.objectives.stages import ReadReport

_FILES_ALONE = ("out_of_domain", "aux_task")
_FILE = re.compile(r"\S*(/\S*|\*|\.(jsonl|ndjson|json|csv|tsv|parquet|txt|text|gz))")


@dataclass(frozen=True)
class GivenData:
    """The arguments of a training, separated into options and data in memory.

    Attributes:
        options: the options, with the names of copies, ``data/train.jsonl``, for data in memory.
        values: the data in memory, by option.
        report: notes about splits of a data set that are left out.
    """

    options: Mapping[str, Any]
    values: Mapping[str, object]
    report: ReadReport

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "GivenData":
        """Separate the arguments.

        Raises:
            AangError: an argument holds data that cannot be used.
        """
        report = ReadReport()
        given = _with_splits(_with_saved(arguments), report)
        values = {n: given[n] for n in PARTS if _in_memory(given.get(n))}
        values |= {n: given[n] for n in TEXTS if _texts_in_memory(given.get(n), n)}
        for name in _FILES_ALONE:
            if _in_memory(given.get(name)) and not isinstance(given[name], Mapping | list | tuple):
                raise ConfigError(f"{name}: takes files only, not a {type(given[name]).__name__}")
        if given.get("text_pair") is None and _holds_pairs(values.get("train")):
            given["text_pair"] = "text_pair"
        return cls({**given, **{name: copy_of(name) for name in values}}, values, report)

    def placed(self, config: TrainConfig, out: Path) -> TrainConfig:
        """The options with the full paths that copies of the data have in the run folder."""
        paths = {name: out.absolute() / copy_of(name) for name in self.values}
        named = {name: path if name in PARTS else (str(path),) for name, path in paths.items()}
        return config.model_copy(update=named)

    def tables(self, config: TrainConfig) -> dict[str, tuple[TableInMemory, Sequence[str]]]:
        """Read the data as tables.

        Args:
            config: the options, from :meth:`placed`.

        Returns:
            For each option its table, and the columns that are read and copied.

        Raises:
            DataError: a value has another form, columns differ in length, or labels differ in type.
        """
        columns = end_task_columns(config)
        found: dict[str, tuple[TableInMemory, Sequence[str]]] = {}
        for name, value in self.values.items():
            labelled = name in PARTS
            table = table_in_memory(value, name, columns, labelled=labelled)
            if labelled:
                require_one_type(table, columns.label)
                found[name] = table, columns.names()
            elif name == "domain":
                found[name] = _with_domain_text(table, columns), (DOMAIN_TEXT,)
            else:
                found[name] = table, columns.texts()
        return found


def _with_saved(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with the data sets that ``save_to_disk`` saved in place of their folders."""

    def saved(name: str, mark: str) -> bool:
        value = arguments.get(name)
        return isinstance(value, str | Path) and (Path(value) / mark).is_file()

    given = dict(arguments)
    if saved("train", "dataset_dict.json"):
        given["dataset"], given["train"] = str(arguments["train"]), arguments.get("dataset")
    for name in PARTS:
        if saved(name, "state.json"):
            from datasets import Dataset

            given[name] = Dataset.load_from_disk(arguments[name])
    return given


def _with_splits(arguments: Mapping[str, Any], report: ReadReport) -> dict[str, Any]:
    """The arguments, with the splits of a DatasetDict in its place.

    Raises:
        AangError: there are other data besides it, or it cannot be used.
    """
    given, datasets = dict(arguments), sys.modules.get("datasets")
    for name in ("dataset", "train"):
        splits = given.get(name)
        if datasets is None or not isinstance(splits, datasets.DatasetDict):
            continue
        if also := [o for o in (*PARTS, "dataset") if given.get(o) is not None and o != name]:
            raise ConfigError(
                f"{name}: this DatasetDict has its own splits; leave {also[0]} out, or give "
                "its splits one by one"
            )
        label = str(given.get("label") or "label")
        parts = parts_of(f"{name} DatasetDict", splits, label, report)
        given |= {"dataset": None, **{part: rows for part, (_, rows) in parts.items()}}
    return given


def _in_memory(value: object) -> bool:
    return value is not None and not isinstance(value, str | Path)


def _texts_in_memory(value: object, name: str) -> bool:
    """Whether the value is texts, and not the names of files.

    A list of strings may be either; a string names a file if it has no spaces and ends like a file
    name, or if there is such a file.

    Raises:
        ConfigError: a list of strings mixes both.
    """
    if not isinstance(value, list | tuple):
        return _in_memory(value)
    named = [item for item in value if isinstance(item, Path) or _names_a_file(item)]
    if named and len(named) < len(value):
        other = next(item for item in value if item not in named)
        raise ConfigError(
            f"{name}: {named[0]!r:.60} looks like a file and {other!r:.60} like a text. Give texts "
            f"as {name}={{'text': [...]}}, and files as a list of pathlib.Path"
        )
    return bool(value) and not named


def _names_a_file(item: object) -> bool:
    # os.path.exists returns False where Path.exists raises, for texts too long to be a name.
    if not isinstance(item, str) or len(item) > 255 or "\n" in item or "\0" in item:
        return False
    return item == REST or _FILE.fullmatch(item) is not None or os.path.exists(item)  # noqa: PTH110


def _holds_pairs(value: object) -> bool:
    """Whether ``(texts, labels)`` has a pair of texts as its first text."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    texts = plain_list(value[0])
    first = texts[0] if texts else None
    return isinstance(first, tuple) and len(first) == 2 and all(isinstance(t, str) for t in first)


def _with_domain_text(table: TableInMemory, columns: Columns) -> TableInMemory:
    """The table with its column of texts under the name that readers of domain text expect."""
    named = table.columns is None or columns.text in table.columns
    if columns.text == DOMAIN_TEXT or not named:
        return table

    def rows(wanted: Sequence[str]) -> Any:
        # Records may have either name.
        for row in table.rows([columns.text] if wanted else []):
            own = row.get(columns.text)
            yield {DOMAIN_TEXT: row.get(DOMAIN_TEXT) if own is None else own}

    return replace(table, columns=(DOMAIN_TEXT,), rows=rows)
