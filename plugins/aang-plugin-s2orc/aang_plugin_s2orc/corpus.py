"""Metadata and full texts joined by paper, without keeping texts in memory."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from aang_core import DataError, ReadReport
from aang_plugin_s2orc.contents import Contents, Found, look_into, read
from aang_plugin_s2orc.endless import EndlessTexts, Records
from aang_plugin_s2orc.layouts import Paper
from aang_plugin_s2orc.marks import ABSTRACT, ABSTRACT_IN_FULL_TEXT, FULL_TEXT, TITLE, Marks
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
        files: the files, and a name for each that does not depend on where they are.
        wanted: decides which papers are wanted.
        marks: what ``wanted`` and the corpus remember about papers; nothing else grows.
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
        self._names = files
        self._wanted = wanted
        self._marks = marks
        self._report = report
        self._at_once = at_once
        self._contents = {path: look_into(path) for path in files}
        self._described = [p for p in files if self._contents[p] is Contents.METADATA]
        self._others = [p for p in files if self._contents[p] is not Contents.METADATA]

    def texts(self) -> Iterator[Text]:
        """All texts of the corpus, in the order of its files within each pass.

        Raises:
            DataError: no paper has the field of study, the years, or the language.
        """
        # Metadata is read up to three times, but its faults should be counted once.
        metadata, again = ReadReport(), ReadReport()
        try:
            self._judge(metadata)
            yield from self._in_turn(self._others, self._full_texts)
            yield from self._in_turn(self._described, lambda path: self._descriptions(path, again))
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
        self._judge(self._report)
        files = self._others or self._described
        if self._others and self._described:
            self._report.note(
                f"s2orc.stream reads full texts and text files alone, such as {files[0]}; "
                f"titles and abstracts are left out, such as those of {self._described[0]}"
            )
        untold = set(files)

        def records(path: Path, after: int) -> Records:
            # Faults are counted only when a file is first read from its start.
            told = self._report if path in untold and not after else ReadReport()
            untold.discard(path)
            for number, paper, where in self._read(path, told, after):
                if self._wanted.takes(paper, where, told, remember=False):
                    title = [paper.title] if paper.title is not None and not paper.abstract else []
                    texts = (*paper.abstract, *paper.body, *title)
                    found = (usable(text, where, told) for text in texts)
                    yield number, [text for text in found if text is not None]

        def nothing() -> DataError:
            self._wanted.require_language()
            return self.nothing_found()

        names = {path: self._names[path] for path in files}
        return EndlessTexts(names, records, nothing, self._at_once)

    def nothing_found(self) -> DataError:
        """The error to raise if `texts` yielded nothing."""
        files = list(self._names)
        if not files:
            return DataError("--domain: no .jsonl, .json, .txt or .gz file in the folders named.")
        # The report also has faults of other data. No option is named, because aang prepare-encoder
        # reads these files, too.
        here = tuple(map(str, files))
        first = {event: w for event, w in self._report.first.items() if w.startswith(here)}
        counts = Counter({event: self._report.counts[event] for event in first})
        met = "; ".join(ReadReport(counts, first).lines()) or "nothing in it"
        others = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        return DataError(f"no usable text in {files[0]}{others}: {met}.")

    def _read(self, path: Path, report: ReadReport, after: int = 0) -> Iterator[Found]:
        contents = self._contents[path]
        if contents in (Contents.LINES, Contents.TABLE) and not self._wanted.anything:
            unknown = "which knows no field of study, year or abstract"
            report.add(f"{contents.value}, {unknown}, skipped", str(path))
            return iter(())
        return read(path, contents, report, after)

    def _judge(self, report: ReadReport) -> None:
        """Find out from metadata which papers are wanted."""
        if self._wanted.by_description:
            for path in self._described:
                for _, paper, where in self._read(path, report):
                    self._wanted.choose(paper, where, report)
            self._wanted.require_chosen()
        if self._wanted.by_language:
            again = ReadReport()
            for path in self._described:
                for _, paper, _ in self._read(path, again):
                    self._wanted.listen(paper)
            report.include(again)

    def _full_texts(self, path: Path) -> Iterator[Sequence[Text]]:
        for _, paper, where in self._read(path, self._report):
            if not paper.full_text:
                self._report.add("metadata among full texts, skipped", where)
            elif self._wanted.takes(paper, where, self._report) and self._is_new(
                paper, FULL_TEXT, where
            ):
                if paper.key is not None and paper.abstract:
                    self._marks.add(paper.key, ABSTRACT_IN_FULL_TEXT)
                yield [(text, where) for text in (*paper.abstract, *paper.body)]

    def _descriptions(self, path: Path, report: ReadReport) -> Iterator[Sequence[Text]]:
        for _, paper, where in self._read(path, report):
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
        if not new:
            self._report.add("paper that came before, skipped", where)
        return new

    def _in_turn(
        self, files: Sequence[Path], texts_of: Callable[[Path], Iterator[Sequence[Text]]]
    ) -> Iterator[Text]:
        """The texts of the files, one record of each of ``at_once`` files in turn.

        When a file ends, the next one joins at the end of the queue.
        """
        waiting = iter(files)
        reading = deque(map(texts_of, islice(waiting, self._at_once)))
        while reading:
            records = reading.popleft()
            texts = next(records, None)
            if texts is None:
                reading.extend(map(texts_of, islice(waiting, 1)))
            else:
                yield from texts
                reading.append(records)
