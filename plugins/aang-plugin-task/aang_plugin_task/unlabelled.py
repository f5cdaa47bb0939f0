"""The data ``unlabelled``: text like the end task's own, without labels."""

from collections.abc import Iterable, Iterator

from aang.corpora import RepeatedTexts

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


class Unlabelled(Data):
    """The texts of ``--unlabelled``: of the end task's own distribution, without labels.

    AANG has none of these: its in-domain text (section 3, stage 1) resembles the task's, but its
    classes need not. Outputs that predict a class of every text, such as UDA's (Xie et al., 2020)
    and FixMatch's (Sohn et al., 2020), are made for this text.

    Dev and test examples are never among the texts.

    Args:
        limit: stop after this many texts.
        min_length: leave out texts with fewer characters. Unlike paragraphs of papers, short texts
            are likely to be examples of the task, so only empty ones are left out by default.
        max_length: leave out texts with more characters.
        stream: train on the texts while they are read, over and over, ``buffer`` of them at a time.
        buffer: number of texts in memory with ``stream``.

    Raises:
        ConfigError: an option is out of range.
    """

    def __init__(
        self,
        limit: int | None = None,
        min_length: int = 1,
        max_length: int | None = None,
        stream: bool = False,
        buffer: int = 10_000,
    ) -> None:
        if limit is not None:
            whole_number_option("unlabelled.limit", limit)
        whole_number_option("unlabelled.min_length", min_length, low=0)
        if max_length is not None:
            whole_number_option("unlabelled.max_length", max_length, low=max(1, min_length))
        whole_number_option("unlabelled.buffer", buffer, low=2)
        if flag_option("unlabelled.stream", stream) and limit is not None:
            raise ConfigError(
                "unlabelled.limit is given, but with unlabelled.stream there is no end."
            )
        self._limit = limit
        self._min_length = min_length
        self._max_length = max_length
        self.buffer = buffer if stream else None

    def examples(self, context: DataContext) -> Iterator[Example]:
        """The texts, in the order in which they are stored, read lazily.

        Raises:
            DataError: ``--unlabelled`` is missing, or no text of it can be used. The latter is
                raised during iteration.
        """
        return self._usable(_texts(context), context)

    def stream(self, context: DataContext) -> RepeatedTexts:
        """The texts over and over.

        Raises:
            DataError: for the same reasons as in `examples`.
        """
        texts = _texts(context)
        return RepeatedTexts(lambda number: self._usable(texts, context))

    def _usable(self, texts: Iterable[Example], context: DataContext) -> Iterator[Example]:
        report, count = ReadReport(), 0
        try:
            for example in texts:
                if unfit := self._unfit(len(example.text) + len(example.text_pair or "")):
                    report.add(f"unlabelled text {unfit} characters, skipped", example.text[:40])
                    continue
                count += 1
                yield example
                if count == self._limit:
                    return
        finally:
            # A stream reads the texts again and again; what it skips is counted once.
            context.report.include(report)
        if not count:
            raise DataError(f"--unlabelled: no usable text: {'; '.join(report.lines())}.")

    def _unfit(self, length: int) -> str | None:
        if length < self._min_length:
            return f"under {self._min_length}"
        if self._max_length is not None and length > self._max_length:
            return f"over {self._max_length}"
        return None


def _texts(context: DataContext) -> Iterable[Example]:
    if context.unlabelled is None:
        raise DataError(
            "The data 'unlabelled' reads text like the end task's own, and none was named. Give "
            "files, folders or globs with --unlabelled; or, with --train-rows, the rows that are "
            "left out with --unlabelled rest; or choose a space without it, such as --space td."
        )
    return context.unlabelled
