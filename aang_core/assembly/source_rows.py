"""Rows of every source, read and tokenised once, for all stages of a run and what follows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from aang_core.assembly.sources import Sources
from aang_core.assembly.stream_rows import StreamRows
from aang_core.checked.data import CheckedData
from aang_core.config import TrainConfig
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.tokens import TokenRows, tokenize
from aang_core.modeling import TextModel
from aang_core.objectives.stages import DataContext, Example, TextStream
from aang_core.plugins.primitive import Primitive


@dataclass(frozen=True)
class SourceRows:
    """A data source's rows.

    Attributes:
        rows: Those of all its texts, or a block of a stream.
        classes: How many classes a classification of them has.
        of_step: Whether they are those that the end task trains on in the step.
    """

    rows: TokenRows | StreamRows
    classes: int
    of_step: bool = False


class SourceReader:
    """Reads and tokenises each data source once, however many objectives and stages use it.

    Args:
        config: The run's options.
        sources: Its sources. Those after a stage of pre-training differ in the encoder alone.
        model: The encoder that the run begins with. Later stages are tokenised for as it is,
            because a stage saves the tokenizer as it was.
    """

    def __init__(self, config: TrainConfig, sources: Sources, model: TextModel) -> None:
        self.tokenizer: PreTrainedTokenizerBase = model.tokenizer
        self._sources = sources
        self._seed = config.seed
        self._max_length = min(config.max_length, model.max_length)
        self._parts: dict[str, tuple[Sequence[Example], TokenRows]] = {}
        self._rows: dict[str, SourceRows] = {}

    def part(self, name: str, examples: Sequence[Example]) -> TokenRows:
        """The rows of the end task's ``examples``; ``name`` is what messages call them."""
        for read, rows in self._parts.values():
            if read is examples:
                return rows
        rows = self._tokenize(examples, name)
        self._parts[name] = (examples, rows)
        return rows

    def train(self) -> TokenRows:
        """The end task's training rows."""
        return self.part("train", self._sources.task.train)

    def source(
        self, primitive: Primitive, rows_per_step: int, streams: dict[str, SourceRows]
    ) -> SourceRows:
        """The rows of the data that ``primitive`` stands for.

        Args:
            primitive: Of the stage data.
            rows_per_step: The most that a step takes of them; it says how soon a stream goes on.
            streams: The streams that this training has opened; another training opens its own,
                from their beginning.
        """
        name = primitive.key
        if name in streams:
            return streams[name]
        if name not in self._rows:
            made = primitive.make(**self._sources.options.get(name, {}))
            data = CheckedData(made, primitive)
            context = DataContext(
                train=self._sources.task.train,
                domain=self._sources.domain,
                out_of_domain=self._sources.out_of_domain,
                seed=self._seed,
                report=self._sources.report,
            )
            if data.buffer is not None:
                steps = max(1, data.buffer // rows_per_step)
                streams[name] = self._streamed(data.stream(context), data.buffer, steps, name)
                return streams[name]
            self._rows[name] = self._read(data, context, name)
        return self._rows[name]

    def _read(self, data: CheckedData, context: DataContext, name: str) -> SourceRows:
        classes = len(self._sources.task.labels)
        if data.of_step or data.of_end_task:
            return SourceRows(self.train(), classes, data.of_step)
        examples = list(data.examples(context))
        labels = self._labels(data.primitive, examples)
        return SourceRows(self._tokenize(examples, name, labels), len(labels) or classes)

    def _streamed(self, stream: TextStream, buffer: int, steps: int, name: str) -> SourceRows:
        def tokenized(examples: Sequence[Example]) -> TokenRows:
            # What is read once leaves nothing in the cache.
            return self._tokenize(examples, name, (), cached=False)

        rows = StreamRows(stream, buffer, steps, tokenized)
        return SourceRows(rows, len(self._sources.task.labels))

    def _labels(self, data: Primitive, examples: Sequence[Example]) -> Sequence[str]:
        """The classes of a source; empty if it declares no labels, or gives none."""
        given = {example.label for example in examples}
        if None in given:
            return ()
        if "labels:own" in data.provides:
            return sorted(label for label in given if label is not None)
        return self._sources.task.labels if "labels:end-task" in data.provides else ()

    def _tokenize(
        self,
        examples: Sequence[Example],
        name: str,
        labels: Sequence[str] | None = None,
        *,
        cached: bool = True,
    ) -> TokenRows:
        """The rows of ``examples``.

        Args:
            labels: The classes, those of the end task for None; empty to leave labels out.
            cached: Whether to keep what the tokenizer makes of them.
        """
        labels = self._sources.task.labels if labels is None else labels
        return tokenize(
            examples,
            self.tokenizer,
            max_length=self._max_length,
            cache=cache_folder() if cached else None,
            label_ids={label: i for i, label in enumerate(labels)} if labels else None,
            report=self._sources.report,
            source=name,
        )
