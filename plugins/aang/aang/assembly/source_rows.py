"""Reads and tokenises every source of a run once, for pre-training and the main training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from aang.assembly.labelled_tasks import LabelledFile
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import NewTexts, StreamRows
from aang.corpora.cache import cache_folder
from aang.corpora.labelled_task import new_texts
from aang.corpora.tokens import TokenRows, tokenize
from aang.modeling import TextModel
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import TaskType
from aang_core.contracts import CheckedData
from aang_core.objectives.stages import Example
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.processes import ALONE, Processes

HELD_OUT_FRACTION = 0.1
MOST_HELD_OUT = 512
"""More texts would add little, and all of them go through the encoder at every evaluation."""


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
        sources: the run's sources. After a stage of pre-training, only the encoder differs.
        model: the encoder that the run starts with. Its tokenizer serves all stages, because a
            stage does not change the tokenizer.
        processes: the processes that read the same sources.
    """

    def __init__(self, sources: Sources, model: TextModel, processes: Processes = ALONE) -> None:
        self.tokenizer: PreTrainedTokenizerBase = model.tokenizer
        self._sources = sources
        self._processes = processes
        self._tokenize = partial(
            tokenize,
            tokenizer=model.tokenizer,
            max_length=min(sources.config.max_length, model.max_length),
            report=sources.report,
        )
        self._parts: dict[str, tuple[Sequence[Example], TokenRows]] = {}
        self._rows: dict[str, SourceRows] = {}
        self._streamed: dict[str, str] = {}

    def part(self, name: str, examples: Sequence[Example]) -> TokenRows:
        """The rows of the end task's ``examples``, which messages call ``name``."""
        for read, rows in self._parts.values():
            if read is examples:
                return rows
        kind = self._sources.task.task_type
        rows = self._tokenize(examples, cache=cache_folder(), task_type=kind, source=name)
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
        name, sources = primitive.key, self._sources
        if name in streams:
            return streams[name]
        if name in self._rows:
            return self._rows[name]
        made = primitive.make(**sources.config.set.get(name, {}))
        if isinstance(made, LabelledFile):
            made.leave_out(sources.held_out)
        data = CheckedData(made, primitive, sources.task.task_type)
        if data.buffer is None:
            self._rows[name] = self._read(data, name)
            return self._rows[name]
        steps = max(1, data.buffer // rows_per_step)
        # The rows of whole steps, so that none is left over when the next block is read.
        size = min(data.buffer, steps * rows_per_step)
        # Not cached: a stream's texts are not read again soon.
        tokenized = partial(self._tokenize, cache=None, source=name)
        stream = NewTexts(data.stream(sources.context), sources.held_out, name)
        rows = StreamRows(stream, size, steps, tokenized, name, self._processes)
        streams[name] = SourceRows(rows, None)
        self._streamed[name] = rows.digest
        return streams[name]

    def digests(self) -> dict[str, str]:
        """Fingerprints of everything read so far, of a stream its first block, by name."""
        parts = {name: rows.digest for name, (_, rows) in self._parts.items()}
        whole = {name: source.rows.digest for name, source in self._rows.items()}
        return parts | whole | self._streamed

    def _read(self, data: CheckedData, name: str) -> SourceRows:
        if data.of_step or data.of_end_task:
            return SourceRows(self.train(), None, data.of_step)
        sources = self._sources
        numbered = enumerate(data.examples(sources.context), start=1)
        found = ((example, f"text {number}") for number, example in numbered)
        examples = list(new_texts(found, sources.held_out, name, name, sources.report))
        labels = [example.label for example in examples]
        # Labels are read only where every example has one.
        provides = data.primitive.provides if None not in labels else frozenset()
        task_type: TaskType | None = None
        classes: int | None = None
        if "labels:own" in provides:
            task_type = SingleLabel(tuple(sorted(set(map(str, labels)))))
            classes = len(task_type.labels)
        elif "labels:end-task" in provides:
            task_type = sources.task.task_type
        rows = self._tokenize(examples, cache=cache_folder(), task_type=task_type, source=name)
        return SourceRows(rows, classes)


def hold_out_of(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw a tenth of ``count`` texts, at most 512, to hold out of the training of an encoder.

    Returns:
        The indices of the held-out texts and those of the others, ascending.
    """
    held_out = min(MOST_HELD_OUT, max(1, round(HELD_OUT_FRACTION * count)))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order[:held_out].sort().values, order[held_out:].sort().values
