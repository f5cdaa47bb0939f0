"""The data ``s2orc``: in-domain text (AANG, section 3, stage 1; TARTAN, section 4)."""

from collections.abc import Iterator

from aang import find_files
from aang.corpora import names_of_files

from aang_core import (
    ConfigError,
    Data,
    DataContext,
    DataError,
    Example,
    ReadReport,
    flag_option,
    whole_number_option,
)
from aang_plugin_s2orc.corpus import Corpus
from aang_plugin_s2orc.endless import EndlessTexts
from aang_plugin_s2orc.marks import Marks
from aang_plugin_s2orc.wanted import Language, Wanted, Years

EXTENSIONS = (".jsonl", ".ndjson", ".json", ".txt", ".gz", ".parquet")
"""Extensions of the files that are read in a folder."""


class S2orc(Data):
    """Paragraphs of papers, lines of text files and rows of tables, named with ``--domain``.

    A paper yields the paragraphs of its abstract and body. If only its metadata is available, it
    yields its abstract or, without one, its title.

    Args:
        field: take only papers of this field of study, such as "Computer Science", in any case.
        years: take only papers of these years: 2015, "2010-2020", "2015-" or "-2005".
        language: take only papers whose abstract is in this language, by its ISO 639 code.
        limit: stop after this many texts.
        min_length: leave out texts with fewer characters. Texts under 20 characters are mostly
            headings and remains of tables, and a selection rate of 15% leaves less than one token
            of them to predict.
        max_length: leave out texts with more characters.
        interleave: number of files read at a time, one paper of each in turn.
        stream: train on the texts while they are read, over and over, ``buffer`` of them at a time.
        buffer: number of texts in memory with ``stream``.
    """

    def __init__(
        self,
        field: str | None = None,
        years: str | int | None = None,
        language: str | None = None,
        limit: int | None = None,
        min_length: int = 20,
        max_length: int | None = None,
        interleave: int = 1,
        stream: bool = False,
        buffer: int = 10_000,
    ) -> None:
        if field is not None and (not isinstance(field, str) or not field.strip()):
            raise ConfigError(f"s2orc.field is {field!r}; give the name of a field of study.")
        whole_number_option("s2orc.min_length", min_length, low=0)
        whole_number_option("s2orc.interleave", interleave)
        whole_number_option("s2orc.buffer", buffer, low=2)
        if limit is not None:
            whole_number_option("s2orc.limit", limit)
        if max_length is not None:
            whole_number_option("s2orc.max_length", max_length, low=max(1, min_length))
        if flag_option("s2orc.stream", stream) and limit is not None:
            raise ConfigError("s2orc.limit is given, but with s2orc.stream there is no end.")
        self._field = field
        self._years = None if years is None else Years.parse(years)
        self._language = None if language is None else Language(language)
        self._limit = limit
        self._min_length = min_length
        self._max_length = max_length
        self._interleave = interleave
        self.buffer = buffer if stream else None

    def examples(self, context: DataContext) -> Iterator[Example]:
        """The texts, full texts first, by sorted paths and lines.

        Files are read lazily; only a few bytes per paper stay in memory.

        Args:
            context: names the files, with ``--domain``.

        Raises:
            DataError: no ``--domain``, a table there without a column ``text``, nothing to read
                there, or no paper in ``field``, of ``years`` or in ``language``. All but the first
                two are raised during iteration.
        """
        return self._limited(self._corpus(context), context.report)

    def stream(self, context: DataContext) -> EndlessTexts:
        """The texts over and over; see `Corpus.endless`.

        Args:
            context: names the files, with ``--domain``.

        Raises:
            DataError: for the same reasons as in `examples`.
        """
        return self._corpus(context).endless(self._usable)

    def _corpus(self, context: DataContext) -> Corpus:
        if not context.domain:
            raise DataError(
                "The data 's2orc' reads in-domain text, and none was named. Give files, folders or "
                "globs with --domain, or choose a space or recipe without s2orc, such as "
                "--space td."
            )
        files = find_files(context.domain, EXTENSIONS, "--domain", context.report)
        marks = Marks()
        wanted = Wanted(self._field, self._years, self._language, marks)
        names = names_of_files(context.domain, files)
        return Corpus(names, wanted, marks, context.report, at_once=self._interleave)

    def _limited(self, corpus: Corpus, report: ReadReport) -> Iterator[Example]:
        count = 0
        for raw, where in corpus.texts():
            if text := self._usable(raw, where, report):
                yield Example(text)
                count += 1
                if count == self._limit:
                    return
        if not count:
            raise corpus.nothing_found()

    def _usable(self, text: str, where: str, report: ReadReport) -> str | None:
        """The text without surrounding whitespace; None if it is too short or too long."""
        stripped = text.strip()
        if len(stripped) < max(1, self._min_length):
            report.add(f"text under {self._min_length} characters, skipped", where)
            return None
        if self._max_length is not None and len(stripped) > self._max_length:
            report.add(f"text over {self._max_length} characters, skipped", where)
            return None
        return stripped
