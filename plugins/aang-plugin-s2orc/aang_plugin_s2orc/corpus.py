"""Metadata and full texts joined by paper, without keeping texts in memory."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from aang import read_text_lines

from aang_core import DataError, ReadReport
from aang_plugin_s2orc.contents import Contents, look_into, read_papers, read_table
from aang_plugin_s2orc.endless import EndlessTexts, Records
from aang_plugin_s2orc.marks import ABSTRACT, ABSTRACT_IN_FULL_TEXT, FULL_TEXT, TITLE, Marks
from aang_plugin_s2orc.paper import Paper
from aang_plugin_s2orc.wanted import Wanted

Text = tuple[str, str]
"""A text and its place, ``file:line``."""


Usable = Callable[[str, str, ReadReport], str | None]


class Corpus:
    """The texts of a list of files, in four passes.

    1. Metadata, only if field of study or year decide which papers are wanted.
    2. Metadata, only if a language is wanted: the language of those papers' abstracts.
    3. Full texts and text files: their paragraphs.
    4. Metadata: the abstracts of papers whose full text is missing or has no abstract.

    Metadata comes last, because which full texts exist is known only once they have been read
    (``has_pdf_parse`` is about the whole release, not about the given shards).

    Args:
        files: the files, and what each is called wherever they are.
        wanted: decides which papers are wanted.
        marks: what ``wanted`` and the corpus remember of papers; nothing else grows.
        report: where faults are reported.
        at_once: number of files read at a time, one record of each in turn.
    """

    def __init__(
        self,
        files: Mapping[Path, str],
        wanted: Wanted,
        marks: Marks,
        report: ReadReport,
        *,
        at_once: int = 1,
    ) -> None:
        self._files = list(files)
        self._names = files
        self._wanted = wanted
        self._marks = marks
        self._report = report
        self._at_once = at_once
        self._contents = {path: look_into(path) for path in files}

    def texts(self) -> Iterator[Text]:
        """All texts of the corpus, in the order of its files within each pass.

        Raises:
            DataError: no paper is in the field of study, of the years, or in the language.
        """
        # Metadata is read up to three times, but its faults should be counted once.
        metadata, again = ReadReport(), ReadReport()
        try:
            self._judge(metadata)
            yield from self._in_turn([p for p in self._files if not self._describes(p)], self._read)
            yield from self._in_turn(
                [p for p in self._files if self._describes(p)],
                lambda path: self._descriptions(path, again),
            )
            self._wanted.require_language()
        finally:
            metadata.include(again)
            self._report.add_all(metadata)

    def endless(self, usable: Usable) -> EndlessTexts:
        """The texts over and over, one record of each of ``at_once`` files in turn.

        These are the texts of full texts and text files or, if there are none, abstracts and titles
        from metadata. They are not mixed, because papers are not remembered here, so it is unknown
        which abstracts the full texts lack.

        Args:
            usable: returns the text to yield, or None to report it and leave it out.

        Raises:
            DataError: no paper is in the field of study or of the years.
        """
        report = self._report
        self._judge(report)
        read = [p for p in self._files if not self._describes(p)] or self._files
        untold = set(read)

        def records(path: Path, after: int) -> Records:
            # Faults are counted only when a file is first read from its start.
            told = report if path in untold and not after else ReadReport()
            untold.discard(path)
            for number, texts in self._records(path, after, told):
                found = (usable(text, where, told) for text, where in texts)
                yield number, [text for text in found if text is not None]

        def nothing() -> DataError:
            self._wanted.require_language()
            return self.nothing_found()

        names = {path: self._names[path] for path in read}
        return EndlessTexts(names, records, nothing, self._at_once)

    def _records(
        self, path: Path, after: int, report: ReadReport
    ) -> Iterator[tuple[int, Sequence[Text]]]:
        """Numbers and texts of a file's records after the record number ``after``."""
        contents = self._contents.get(path)
        if contents in (Contents.LINES, Contents.TABLE):
            if not self._wanted.anything:
                report.add(f"{contents.value}, {_UNKNOWN}, skipped", str(path))
                return
            read = read_text_lines if contents is Contents.LINES else read_table
            for number, text in islice(enumerate(read(path, report), 1), after, None):
                yield number, [text]
        elif contents is Contents.BINARY:
            report.add("file that is not text, skipped", str(path))
        else:
            for paper, where in read_papers(path, report, after):
                if not self._wanted.takes(paper, where, report, remember=False):
                    continue
                title = [] if paper.title is None or paper.abstract else [paper.title]
                number = int(where.rpartition(":")[2])
                yield number, [(text, where) for text in (*paper.abstract, *paper.body, *title)]

    def nothing_found(self) -> DataError:
        """The error to raise if `texts` yielded nothing."""
        if not self._files:
            return DataError("--domain: no .jsonl, .json, .txt or .gz file in the folders named.")
        # The report also has what was met in other data. No option is named, because
        # aang prepare-encoder reads these files, too.
        here = tuple(str(path) for path in self._files)
        first = {event: w for event, w in self._report.first.items() if w.startswith(here)}
        counts = Counter({event: self._report.counts[event] for event in first})
        met = "; ".join(ReadReport(counts, first).lines()) or "nothing in it"
        others = f" and {len(self._files) - 1} more files" if len(self._files) > 1 else ""
        return DataError(f"no usable text in {self._files[0]}{others}: {met}.")

    def _judge(self, report: ReadReport) -> None:
        """Find out from metadata which papers are wanted."""
        if self._wanted.by_description:
            for paper, where in self._metadata(report):
                self._wanted.choose(paper, where, report)
            self._wanted.require_chosen()
        if self._wanted.by_language:
            again = ReadReport()
            for paper, _ in self._metadata(again):
                self._wanted.listen(paper)
            report.include(again)

    def _metadata(self, report: ReadReport) -> Iterator[tuple[Paper, str]]:
        for path in self._files:
            if self._describes(path):
                yield from read_papers(path, report)

    def _read(self, path: Path) -> Iterator[Sequence[Text]]:
        match self._contents[path]:
            case Contents.FULL_TEXT:
                return self._full_texts(path)
            case Contents.LINES:
                return self._lines(path)
            case Contents.TABLE:
                return self._rows(path)
        self._report.add("file that is not text, skipped", str(path))
        return iter(())

    def _full_texts(self, path: Path) -> Iterator[Sequence[Text]]:
        for paper, where in read_papers(path, self._report):
            if not paper.full_text:
                self._report.add("metadata among full texts, skipped", where)
            elif self._wanted.takes(paper, where, self._report) and self._is_new(
                paper, FULL_TEXT, where
            ):
                if paper.key is not None and paper.abstract:
                    self._marks.add(paper.key, ABSTRACT_IN_FULL_TEXT)
                yield [(text, where) for text in (*paper.abstract, *paper.body)]

    def _lines(self, path: Path) -> Iterator[Sequence[Text]]:
        if self._wanted.anything:
            yield from ([text] for text in read_text_lines(path, self._report))
        else:
            self._report.add(f"text file, {_UNKNOWN}, skipped", str(path))

    def _rows(self, path: Path) -> Iterator[Sequence[Text]]:
        if self._wanted.anything:
            yield from ([text] for text in read_table(path, self._report))
        else:
            self._report.add(f"table, {_UNKNOWN}, skipped", str(path))

    def _descriptions(self, path: Path, report: ReadReport) -> Iterator[Sequence[Text]]:
        for paper, where in read_papers(path, report):
            if paper.full_text:
                self._report.add("full text among metadata, skipped", where)
            elif self._wanted.takes(paper, where, self._report):
                yield [(text, where) for text in self._description(paper, where)]

    def _description(self, paper: Paper, where: str) -> Sequence[str]:
        """What metadata adds to the full texts: an abstract, or else a title, or nothing."""
        if paper.abstract:
            texts, given, mark = paper.abstract, ABSTRACT_IN_FULL_TEXT, ABSTRACT
        else:
            title = () if paper.title is None else (paper.title,)
            texts, given, mark = title, FULL_TEXT, TITLE
        # Abstract and title each have a mark: S2AG keeps them in two data sets.
        if not texts or (paper.key is not None and self._marks.of(paper.key) & given):
            return ()
        return texts if self._is_new(paper, mark, where) else ()

    def _is_new(self, paper: Paper, mark: int, where: str) -> bool:
        """Mark a paper and return whether it did not have ``mark`` before."""
        if paper.key is None:
            return True
        new = self._marks.add(paper.key, mark)
        if paper.key_repeats:
            # The mark on the key alone is what joins it with metadata.
            new = self._marks.add("\0".join((paper.key, *paper.body)), mark)
        if new:
            return True
        self._report.add("paper that came before, skipped", where)
        return False

    def _in_turn(
        self, files: Sequence[Path], read: Callable[[Path], Iterator[Sequence[Text]]]
    ) -> Iterator[Text]:
        """The texts of the files, one record of each of ``at_once`` files in turn.

        When a file ends, the next one joins at the end of the queue.
        """
        waiting = iter(files)
        reading = deque(map(read, islice(waiting, self._at_once)))
        while reading:
            records = reading.popleft()
            texts = next(records, None)
            if texts is None:
                reading.extend(map(read, islice(waiting, 1)))
            else:
                yield from texts
                reading.append(records)

    def _describes(self, path: Path) -> bool:
        return self._contents[path] is Contents.METADATA


_UNKNOWN = "which knows no field of study, year or abstract"
