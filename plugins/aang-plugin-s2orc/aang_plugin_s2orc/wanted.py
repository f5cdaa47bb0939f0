"""Which papers are wanted, by their metadata and the language of their abstracts."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from aang_core import ConfigError, DataError, ReadReport
from aang_plugin_s2orc.layouts import Paper
from aang_plugin_s2orc.marks import CHOSEN, IN_LANGUAGE, OTHER_LANGUAGE, Marks

_LISTED = 10

_CHARACTERS = 500
"""Length of the start of an abstract by which its language is identified; more rarely changes the
answer and takes longer."""


@dataclass(frozen=True)
class Years:
    """A range of years of publication.

    Attributes:
        first: the first year.
        last: the last year, included.
        said: the range as the user wrote it.
    """

    first: int
    last: int
    said: str

    @classmethod
    def parse(cls, option: object) -> "Years":
        """Parse ``2015``, ``2010-2020``, ``2015-`` or ``-2005``.

        Raises:
            ConfigError: it has another form, or ends before it begins.
        """
        said = "" if isinstance(option, bool) else str(option).strip()
        first, dash, last = (part.strip() for part in said.replace("–", "-").partition("-"))
        given = [year for year in (first, last) if year]
        if not given or not all(len(y) == 4 and y.isascii() and y.isdigit() for y in given):
            raise ConfigError(
                f"s2orc.years is {option!r}; give a year or a range of years, such as 2015, "
                "2010-2020, 2015- or -2005."
            )
        years = cls(int(first or 0), int((last or 9999) if dash else first), said)
        if years.first > years.last:
            raise ConfigError(f"s2orc.years is {option!r}, which ends before it begins.")
        return years


class Language:
    """A wanted language, identified by py3langid.

    Lui and Baldwin, langid.py: An Off-the-shelf Language Identification Tool, ACL 2012: naive Bayes
    over byte n-grams. Nothing is random, so the same text always gets the same language.

    Args:
        code: its ISO 639 code, such as ``en``.

    Raises:
        ConfigError: py3langid is not installed, or does not know the language.
    """

    def __init__(self, code: object) -> None:
        # YAML reads the code of Norwegian, no, as false.
        self.code = "no" if code is False else str(code).strip().lower()
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError as error:
            raise ConfigError(
                f"s2orc.language is {code!r}: identifying languages needs py3langid; "
                "pip install 'aang-plugin-s2orc[language]'"
            ) from error
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        if self.code not in self._identifier.labels:
            known = " ".join(sorted(self._identifier.labels))
            raise ConfigError(
                f"s2orc.language is {code!r}; give the code of one language. The known codes "
                f"are {known}."
            )

    def of(self, text: str) -> str:
        """The code of the most likely language of the start of ``text``."""
        return str(self._identifier.classify(text[:_CHARACTERS])[0])


class Wanted:
    """Selects papers of a field of study, of some years, and in a language.

    First `choose` and then `listen` must be called with all metadata; they mark papers. After that,
    `takes` decides for every record whether its paper is wanted.

    Args:
        field: field of study; None for any.
        years: years of publication; None for any.
        language: language of the abstract; None for any.
        marks: where papers are marked.

    Attributes:
        by_description: whether a paper's metadata decides.
        by_language: whether a paper's language decides.
        anything: whether everything is taken, including texts that belong to no paper.
    """

    def __init__(
        self, field: str | None, years: Years | None, language: Language | None, marks: Marks
    ) -> None:
        self._field = field
        self._years = years
        self._language = language
        self._marks = marks
        self.by_description = field is not None or years is not None
        self.by_language = language is not None
        self.anything = not self.by_description and not self.by_language
        self._passed: set[str] = set()
        self._met: dict[str, Counter[Any]] = defaultdict(Counter)

    def choose(self, paper: Paper, where: str, report: ReadReport) -> None:
        """Mark a paper if its metadata is of the wanted field and years."""
        if paper.key is None or not paper.described:
            return
        if self._field is not None:
            if not paper.fields:
                report.add("paper without a field of study, left out", where)
                return
            self._met["field"].update(paper.fields)
            wanted = self._field.strip().casefold()
            if not any(name.casefold() == wanted for name in paper.fields):
                return
            self._passed.add("field")
        if self._years is not None:
            if paper.year is None:
                report.add("paper without a year, left out", where)
                return
            self._met["years"][paper.year] += 1
            if not self._years.first <= paper.year <= self._years.last:
                return
            self._passed.add("years")
        self._marks.add(paper.key, CHOSEN)

    def require_chosen(self) -> None:
        """Raise a DataError if `choose` had to mark papers and has marked none."""
        if self._field is not None and "field" not in self._passed:
            raise self._nothing("field", self._field)
        if self._years is not None and "years" not in self._passed:
            raise self._nothing("years", self._years.said)

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
        if not self.by_language or marks & IN_LANGUAGE:
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
        """Raise a DataError unless an abstract was in the wanted language, or any may be."""
        if self._language is not None and "language" not in self._passed:
            raise self._nothing("language", self._language.code)

    def _hear(self, paper: Paper, *, remember: bool = True) -> bool:
        assert self._language is not None
        code = self._language.of("\n".join(paper.abstract))
        self._met["language"][code] += 1
        is_it = code == self._language.code
        if is_it:
            self._passed.add("language")
        if paper.key is not None and remember:
            self._marks.add(paper.key, IN_LANGUAGE if is_it else OTHER_LANGUAGE)
        return is_it

    def _nothing(self, option: str, asked: str) -> DataError:
        """The error for a filter that no paper passes; it lists the values that exist."""
        silent, values = _OF_FILTER[option]
        met = self._met[option].most_common(_LISTED)
        if not met:
            return DataError(
                f"s2orc.{option} is {asked!r}, but {silent}. Add the metadata of the papers to "
                "--domain, or leave the option out."
            )
        known = ", ".join(f"{value} ({n})" for value, n in met)
        return DataError(
            f"s2orc.{option} is {asked!r}, which no paper has. The most frequent {values} there "
            f"are: {known}."
        )


_OF_FILTER = {
    "field": ("no record names its fields of study", "fields of study"),
    "years": ("no record names its year", "years"),
    "language": ("no paper has an abstract that tells its language", "languages"),
}
"""What to say about each filter if nothing that it reads was found, and what its values are."""
