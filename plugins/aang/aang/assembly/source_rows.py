"""Reads and tokenises every source of a run once, for pre-training and the main training."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.corpora.cache import cache_folder
from aang.corpora.task_files import LabelledFile
from aang.corpora.tokens import TokenRows, tokenize
from aang.modeling import TextModel
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import TaskType
from aang_core.checked.data import CheckedData
from aang_core.objectives.stages import DataContext, Example, TextStream
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.processes import ALONE, Processes


@dataclass(frozen=True)
class SourceRows:
    """The rows of a data source.

    Attributes:
        rows: the rows of all its texts, or a block of a stream.
        classes: the number of classes of the rows' own labels; None if they have the end task's
            labels or none.
        of_step: whether they are the rows that the end task trains on in the step.
    """

    rows: TokenRows | StreamRows
    classes: int | None
    of_step: bool = False


class SourceReader:
    """Reads and tokenises each data source once, even if several objectives and stages use it.

    Args:
        config: the run's options.
        sources: its sources. After a stage of pre-training, only the encoder differs.
        model: the encoder that the run starts with. Its tokenizer serves all stages, because a
            stage does not change the tokenizer.
        processes: the processes that read the same.
    """

    def __init__(
        self,
        config: TrainConfig,
        sources: Sources,
        model: TextModel,
        processes: Processes = ALONE,
    ) -> None:
        self.tokenizer: PreTrainedTokenizerBase = model.tokenizer
        self._sources = sources
        self._processes = processes
        self._seed = config.seed
        self._max_length = min(config.max_length, model.max_length)
        self._parts: dict[str, tuple[Sequence[Example], TokenRows]] = {}
        self._rows: dict[str, SourceRows] = {}

    def part(self, name: str, examples: Sequence[Example]) -> TokenRows:
        """The rows of the end task's ``examples``, which messages call ``name``."""
        for read, rows in self._parts.values():
            if read is examples:
                return rows
        rows = self._tokenize(examples, name, self._sources.task.task_type)
        self._parts[name] = (examples, rows)
        return rows

    def train(self) -> TokenRows:
        """The end task's training rows."""
        return self.part("train", self._sources.task.train)

    def source(
        self, primitive: Primitive, rows_per_step: int, streams: dict[str, SourceRows]
    ) -> SourceRows:
        """The rows of a data primitive.

        Args:
            primitive: the data primitive.
            rows_per_step: the largest number of its rows that a step uses; a stream moves on to the
                next block accordingly.
            streams: the streams that this training has opened; another training opens its own, from
                the beginning.
        """
        name = primitive.key
        if name in streams:
            return streams[name]
        if name not in self._rows:
            made = primitive.make(**self._sources.options.get(name, {}))
            if isinstance(made, LabelledFile):
                made.leave_out(self._sources.held_out)
            data = CheckedData(made, primitive, self._sources.task.task_type.name)
            context = DataContext(
                train=self._sources.task.train,
                domain=self._sources.domain,
                out_of_domain=self._sources.out_of_domain,
                unlabelled=self._sources.unlabelled,
                seed=self._seed,
                report=self._sources.report,
            )
            if data.buffer is not None:
                steps = max(1, data.buffer // rows_per_step)
                # The rows of whole steps, so that none is left over when the next block is read.
                size = min(data.buffer, steps * rows_per_step)
                streams[name] = self._streamed(data.stream(context), size, steps, name)
                return streams[name]
            self._rows[name] = self._read(data, context, name)
        return self._rows[name]

    def digests(self) -> dict[str, str]:
        """Fingerprints of everything read so far except streams, by what messages call it."""
        parts = {name: rows.digest for name, (_, rows) in self._parts.items()}
        return parts | {name: source.rows.digest for name, source in self._rows.items()}

    def _read(self, data: CheckedData, context: DataContext, name: str) -> SourceRows:
        if data.of_step or data.of_end_task:
            return SourceRows(self.train(), None, data.of_step)
        examples = list(data.examples(context))
        task_type = self._task_type(data.primitive, examples)
        own = task_type is not None and "labels:own" in data.primitive.provides
        classes = len(task_type.labels) if own and task_type is not None else None
        return SourceRows(self._tokenize(examples, name, task_type), classes)

    def _streamed(self, stream: TextStream, buffer: int, steps: int, name: str) -> SourceRows:
        def tokenized(examples: Sequence[Example]) -> TokenRows:
            # Not cached: a stream's texts are not read again soon.
            return self._tokenize(examples, name, None, cached=False)

        rows = StreamRows(stream, buffer, steps, tokenized, name, self._processes)
        return SourceRows(rows, None)

    def _task_type(self, data: Primitive, examples: Sequence[Example]) -> TaskType | None:
        """What the labels of a source are; None if it declares none or an example has none."""
        given = [example.label for example in examples]
        if None in given:
            return None
        if "labels:own" in data.provides:
            return SingleLabel(tuple(sorted({str(label) for label in given})))
        return self._sources.task.task_type if "labels:end-task" in data.provides else None

    def _tokenize(
        self,
        examples: Sequence[Example],
        name: str,
        task_type: TaskType | None,
        *,
        cached: bool = True,
    ) -> TokenRows:
        """Tokenise ``examples``.

        Args:
            examples: the texts.
            name: what messages call them.
            task_type: what their labels are; None to leave labels out.
            cached: whether to keep the token ids in the cache.
        """
        return tokenize(
            examples,
            self.tokenizer,
            max_length=self._max_length,
            cache=cache_folder() if cached else None,
            task_type=task_type,
            report=self._sources.report,
            source=name,
        )
