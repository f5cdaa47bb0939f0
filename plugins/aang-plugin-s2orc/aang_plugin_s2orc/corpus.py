"""Metadata and full texts joined by paper, without ever holding a text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from aang_core import DataError, ReadReport, read_text_lines
from aang_plugin_s2orc.contents import Contents, look_into, read_papers, read_table
from aang_plugin_s2orc.paper import Paper

Text = tuple[str, str]
"""A text and its place, ``file:line``."""


class Corpus:
    """The texts of a list of files, in three passes.

    1. Metadata, only if a field of study is asked for: which papers are in it?
    2. Full texts and text files: their paragraphs.
    3. Metadata: the abstracts of papers whose full text has none or is not at hand.

    Metadata comes last because which full texts there are is known only once they have been read
    (``has_pdf_parse`` speaks of the whole release, not of the shards at hand).
    """

    def __init__(self, files: Sequence[Path], field: str | None, report: ReadReport) -> None:
        self._files = files
        self._field = field
        self._report = report
        self._contents = {path: look_into(path) for path in files}
        self._frequency: Counter[str] = Counter()
        self._in_field: set[str] = set()
        self._with_full_text: set[str] = set()
        self._complete: set[str] = set()
        self._with_abstract: set[str] = set()
        self._with_title: set[str] = set()

    def texts(self) -> Iterator[Text]:
        """All texts of the corpus, in the order of its files within each pass.

        Raises:
            DataError: no paper is in the field of study.
        """
        if self._field is not None:
            self._find_papers_in_field()
        for path in self._files:
            match self._contents[path]:
                case Contents.FULL_TEXT:
                    yield from self._full_texts(path)
                case Contents.LINES:
                    yield from self._lines(path)
                case Contents.TABLE:
                    yield from self._rows(path)
                case Contents.BINARY:
                    self._report.add("file that is not text, skipped", str(path))
        for path in self._having(Contents.METADATA):
            yield from self._descriptions(path)

    def nothing_found(self) -> DataError:
        """The error to raise when no text came out of :meth:`texts`."""
        if not self._files:
            return DataError("--domain: no .jsonl, .json, .txt or .gz file in the folders named.")
        met = "; ".join(self._report.lines()) or "nothing in it"
        others = f" and {len(self._files) - 1} more files" if len(self._files) > 1 else ""
        return DataError(f"--domain: no usable text in {self._files[0]}{others}: {met}.")

    def _find_papers_in_field(self) -> None:
        # What is wrong with the files is counted in the pass that uses them.
        for path in self._having(Contents.METADATA):
            for paper, _ in read_papers(path, ReadReport()):
                if self._is_in_field(paper) and paper.key is not None:
                    self._in_field.add(paper.key)
        if not self._in_field:
            raise self._no_such_field()

    def _full_texts(self, path: Path) -> Iterator[Text]:
        for paper, where in read_papers(path, self._report):
            if not paper.full_text:
                self._report.add("metadata among full texts, skipped", where)
            elif self._is_wanted(paper) and self._is_new(paper, self._with_full_text, where):
                if paper.key is not None and paper.abstract:
                    self._complete.add(paper.key)
                yield from ((text, where) for text in (*paper.abstract, *paper.body))

    def _lines(self, path: Path) -> Iterator[Text]:
        if self._field is None:
            yield from read_text_lines(path, self._report)
        else:
            self._report.add("text file, which knows no field of study, skipped", str(path))

    def _rows(self, path: Path) -> Iterator[Text]:
        if self._field is None:
            yield from read_table(path, self._report)
        else:
            self._report.add("Parquet file, which knows no field of study, skipped", str(path))

    def _descriptions(self, path: Path) -> Iterator[Text]:
        for paper, where in read_papers(path, self._report):
            if paper.full_text:
                self._report.add("full text among metadata, skipped", where)
            elif self._is_wanted(paper):
                yield from ((text, where) for text in self._description(paper, where))

    def _description(self, paper: Paper, where: str) -> Sequence[str]:
        """What metadata adds to the full texts: an abstract, else a title, else nothing."""
        if paper.abstract:
            texts, given, met = paper.abstract, self._complete, self._with_abstract
        else:
            title = () if paper.title is None else (paper.title,)
            texts, given, met = title, self._with_full_text, self._with_title
        # Abstract and title each have a set: S2AG keeps them in two data sets.
        if not texts or paper.key in given or not self._is_new(paper, met, where):
            return ()
        return texts

    def _is_wanted(self, paper: Paper) -> bool:
        return self._field is None or paper.key in self._in_field

    def _is_new(self, paper: Paper, met: set[str], where: str) -> bool:
        """Whether the paper is not in ``met`` yet; puts it there."""
        if paper.key is None:
            return True
        if paper.key in met:
            self._report.add("paper that came before, skipped", where)
            return False
        met.add(paper.key)
        return True

    def _is_in_field(self, paper: Paper) -> bool:
        self._frequency.update(paper.fields)
        wanted = (self._field or "").strip().casefold()
        return any(name.casefold() == wanted for name in paper.fields)

    def _having(self, contents: Contents) -> list[Path]:
        return [path for path in self._files if self._contents[path] is contents]

    def _no_such_field(self) -> DataError:
        if not self._frequency:
            return DataError(
                f"s2orc.field is {self._field!r}, but no record names its fields of study. Add "
                "the metadata of the papers to --domain, or leave the option out."
            )
        known = ", ".join(f"{name} ({n})" for name, n in self._frequency.most_common(10))
        return DataError(
            f"s2orc.field is {self._field!r}, and no paper is in that field. The most frequent "
            f"fields there are: {known}."
        )
