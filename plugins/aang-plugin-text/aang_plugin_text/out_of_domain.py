"""The data ``out-of-domain``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from aang import find_files, read_text_lines

from aang_core import (
    ConfigError,
    Data,
    DataContext,
    DataError,
    Example,
    ReadReport,
    whole_number_option,
)

Unit = Literal["auto", "line", "paragraph"]
_EXTENSIONS = (".txt", ".text", ".md", ".rst", ".gz")


class OutOfDomain(Data):
    """Generic text (AANG, Figure 1: the data of BERT, GPT, XLNet and ELMo).

    Args:
        unit: what one text is: a line; a paragraph (the lines between blank ones, joined); or, for
            "auto", a paragraph in files with blank lines and a line in others.
        limit: maximum number of texts; None for all.
        min_length: skip texts with fewer characters.

    Raises:
        ConfigError: an option is out of range.
    """

    def __init__(self, unit: Unit = "auto", limit: int | None = None, min_length: int = 20) -> None:
        if unit not in get_args(Unit):
            raise ConfigError(
                f"out-of-domain.unit is {unit!r}; give one of {', '.join(get_args(Unit))}"
            )
        if limit is not None:
            whole_number_option("out-of-domain.limit", limit)
        whole_number_option("out-of-domain.min_length", min_length, low=0)
        self._unit = unit
        self._limit = limit
        self._min_length = min_length

    def examples(self, context: DataContext) -> Iterator[Example]:
        """The texts, in the order of sorted paths and of lines, read lazily.

        Raises:
            DataError: ``--out-of-domain`` is missing, or its files contain no usable text.
        """
        if not context.out_of_domain:
            raise DataError(
                "The data 'out-of-domain' reads plain text files, and none was named. Give files, "
                "folders or globs with --out-of-domain, or choose a space without it."
            )
        files = find_files(context.out_of_domain, _EXTENSIONS, "--out-of-domain", context.report)
        return self._limited(files, context.report)

    def _limited(self, files: Sequence[Path], report: ReadReport) -> Iterator[Example]:
        count = 0
        for path in files:
            for text, where in self._texts(path, report):
                if len(text) < max(1, self._min_length):
                    report.add(f"text under {self._min_length} characters, skipped", where)
                    continue
                yield Example(text)
                count += 1
                if count == self._limit:
                    return
        if not count:
            raise DataError(
                f"--out-of-domain: found no text of {self._min_length} or more characters in "
                f"{', '.join(map(str, files)) or 'the folders given'}."
            )

    def _texts(self, path: Path, report: ReadReport) -> Iterator[tuple[str, str]]:
        """Texts of a file, each with its place."""
        by_paragraph = self._unit == "paragraph" or (self._unit == "auto" and _has_gaps(path))
        block: list[str] = []
        first = ""
        for line, where, parted in _lines(path, report):
            if block and (parted or not by_paragraph):
                yield " ".join(block), first
                block = []
            if not block:
                first = where
            block.append(" ".join(line.split()))
        if block:
            yield " ".join(block), first


def _has_gaps(path: Path) -> bool:
    return any(parted for _, _, parted in _lines(path, ReadReport()))


def _lines(path: Path, report: ReadReport) -> Iterator[tuple[str, str, bool]]:
    """Each line with its place, and whether a blank line comes between it and the one before."""
    skipped, blank = ReadReport(), 0
    try:
        for count, (line, where) in enumerate(read_text_lines(path, skipped), start=1):
            # Lines that cannot be read are numbered like blank ones, but they separate nothing.
            left_out = sum(n for event, n in skipped.counts.items() if event.endswith("skipped"))
            before, blank = blank, int(where.rpartition(":")[2]) - count - left_out
            yield line, where, count > 1 and blank > before
    finally:
        report.add_all(skipped)
