"""Which papers are wanted, by their metadata and the language of their abstracts."""

from collections import Counter
from typing import Any

from aang_core import DataError, ReadReport
from aang_plugin_s2orc.language import Language
from aang_plugin_s2orc.marks import CHOSEN, IN_LANGUAGE, OTHER_LANGUAGE, Marks
from aang_plugin_s2orc.paper import Paper
from aang_plugin_s2orc.years import Years

_LISTED = 10


class Wanted:
    """Selects papers of a field of study, of some years, and in a language.

    First `choose` and then `listen` must be called with all metadata; they mark papers. After that,
    `takes` decides for every record whether its paper is wanted.

    Args:
        field: field of study; None for any.
        years: years of publication; None for any.
        language: language of the abstract; None for any.
        marks: where papers are marked.
    """

    def __init__(
        self, field: str | None, years: Years | None, language: Language | None, marks: Marks
    ) -> None:
        self._field = field
        self._years = years
        self._language = language
        self._marks = marks
        self._in_field = self._chosen = self._in_language = False
        self._fields: Counter[str] = Counter()
        self._met_years: Counter[int] = Counter()
        self._languages: Counter[str] = Counter()

    @property
    def by_description(self) -> bool:
        """Whether a paper's metadata decides."""
        return self._field is not None or self._years is not None

    @property
    def by_language(self) -> bool:
        """Whether a paper's language decides."""
        return self._language is not None

    @property
    def anything(self) -> bool:
        """Whether everything is taken, including texts that belong to no paper."""
        return not self.by_description and not self.by_language

    def choose(self, paper: Paper, where: str, report: ReadReport) -> None:
        """Mark a paper if its metadata is of the wanted field and years."""
        if paper.key is None or not paper.described:
            return
        if self._field is not None:
            if not paper.fields:
                report.add("paper without a field of study, left out", where)
                return
            self._fields.update(paper.fields)
            wanted = self._field.strip().casefold()
            if not any(name.casefold() == wanted for name in paper.fields):
                return
            self._in_field = True
        if self._years is not None:
            if paper.year is None:
                report.add("paper without a year, left out", where)
                return
            self._met_years[paper.year] += 1
            if paper.year not in self._years:
                return
        self._marks.add(paper.key, CHOSEN)
        self._chosen = True

    def require_chosen(self) -> None:
        """Check that `choose` has marked a paper.

        Raises:
            DataError: it has not.
        """
        if self._chosen or not self.by_description:
            return
        if self._field is not None and not self._in_field:
            raise _nothing("field", self._field, self._fields, "fields of study")
        assert self._years is not None
        raise _nothing("years", self._years.said, self._met_years, "years")

    def listen(self, paper: Paper) -> None:
        """Mark the language of the abstract in a paper's metadata, if wanted by field and years."""
        if paper.key is not None and paper.abstract and not paper.full_text:
            marks = self._marks.of(paper.key)
            heard = marks & (IN_LANGUAGE | OTHER_LANGUAGE)
            if not heard and (marks & CHOSEN or not self.by_description):
                self._hear(paper)

    def takes(self, paper: Paper, where: str, report: ReadReport, *, remember: bool = True) -> bool:
        """Whether a paper is wanted.

        Args:
            paper: one of its records.
            where: place of the record, for the report.
            report: where faults are reported.
            remember: whether the language of this record also counts for the paper's others.
        """
        marks = 0 if paper.key is None else self._marks.of(paper.key)
        if self.by_description and not marks & CHOSEN:
            return False
        if self._language is None or marks & IN_LANGUAGE:
            return True
        if marks & OTHER_LANGUAGE:
            return False
        if paper.abstract:
            return self._hear(paper, remember=remember)
        report.add("paper without an abstract that tells its language, left out", where)
        if paper.key is not None and remember:
            self._marks.add(paper.key, OTHER_LANGUAGE)
        return False

    def require_language(self) -> None:
        """Check that an abstract was in the wanted language.

        Raises:
            DataError: there was none.
        """
        if self._language is not None and not self._in_language:
            raise _nothing("language", self._language.code, self._languages, "languages")

    def _hear(self, paper: Paper, *, remember: bool = True) -> bool:
        assert self._language is not None
        code = self._language.of("\n".join(paper.abstract))
        self._languages[code] += 1
        is_it = code == self._language.code
        self._in_language |= is_it
        if paper.key is not None and remember:
            self._marks.add(paper.key, IN_LANGUAGE if is_it else OTHER_LANGUAGE)
        return is_it


def _nothing(option: str, asked: str, met: Counter[Any], values: str) -> DataError:
    """The error for a filter that no paper passes; it lists the values that exist."""
    if not met:
        return DataError(
            f"s2orc.{option} is {asked!r}, but {_SILENT[option]}. Add the metadata of the papers "
            "to --domain, or leave the option out."
        )
    known = ", ".join(f"{value} ({n})" for value, n in met.most_common(_LISTED))
    return DataError(
        f"s2orc.{option} is {asked!r}, and no paper is {_PASSING[option]}. The most frequent "
        f"{values} there are: {known}."
    )


_SILENT = {
    "field": "no record names its fields of study",
    "years": "no record names its year",
    "language": "no paper has an abstract that tells its language",
}
_PASSING = {
    "field": "in that field",
    "years": "of those years",
    "language": "in that language",
}
