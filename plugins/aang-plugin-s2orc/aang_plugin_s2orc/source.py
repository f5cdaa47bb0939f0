"""The data ``s2orc``: in-domain text (AANG, section 3, stage 1; TARTAN, section 4)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from aang_core import ConfigError, DataContext, DataError, Example, ReadReport, find_files
from aang_plugin_s2orc.corpus import Corpus

EXTENSIONS = (".jsonl", ".ndjson", ".json", ".txt", ".gz", ".parquet")
"""What is read of a folder."""


class S2orc:
    """Paragraphs of the papers, and lines of the text files, named with ``--domain``.

    field: take only papers of this field of study, such as "Computer Science", whatever its case.
    limit: stop after so many texts.
    min_length: leave texts with fewer characters out. Of texts under 20, mostly headings and
        remains of tables, a selection rate of 15% leaves less than one token to predict.

    A paper gives the paragraphs of its abstract and body. Where only its metadata is at hand, it
    gives its abstract, and its title where it has none.
    """

    def __init__(
        self, field: str | None = None, limit: int | None = None, min_length: int = 20
    ) -> None:
        if field is not None and (not isinstance(field, str) or not field.strip()):
            raise ConfigError(f"s2orc.field is {field!r}; give the name of a field of study.")
        _require_count("limit", limit, least=1)
        _require_count("min_length", min_length, least=0)
        self._field = field
        self._limit = limit
        self._min_length = min_length

    def examples(self, context: DataContext) -> Iterator[Example]:
        """The texts, full texts first, in the order of sorted paths and of lines.

        Files are read as the texts are asked for; nothing is held but the ids of papers.

        Raises:
            DataError: no ``--domain``, nothing to read there, or no paper in ``field``. The last
                two show only when the first text is asked for.
        """
        if not context.domain:
            raise DataError(
                "The data 's2orc' reads in-domain text, and none was named. Give files, folders or "
                "globs with --domain, or choose a space or recipe without s2orc, such as "
                "--space td."
            )
        files = find_files(context.domain, EXTENSIONS, "--domain", context.report)
        return self._limited(files, context.report)

    def _limited(self, files: Sequence[Path], report: ReadReport) -> Iterator[Example]:
        corpus = Corpus(files, self._field, report)
        count = 0
        for text, where in corpus.texts():
            stripped = text.strip()
            if len(stripped) < max(1, self._min_length):
                report.add(f"text under {self._min_length} characters, skipped", where)
                continue
            yield Example(stripped)
            count += 1
            if count == self._limit:
                return
        if not count:
            raise corpus.nothing_found()


def _require_count(option: str, value: object, *, least: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"s2orc.{option} is {value!r}; give a whole number, at least {least}.")
