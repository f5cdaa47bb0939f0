"""Checks of data primitives: their examples and streams are checked as they are read."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aang.task_types.names import TaskTypeName

from aang_core.checked.contract import broken, described
from aang_core.checked.labels import expected_of
from aang_core.objectives.stages import (
    Data,
    DataContext,
    EndTaskData,
    Example,
    StepData,
    StreamingData,
    TextStream,
)
from aang_core.plugins.primitive import Primitive

_END: Any = object()


class CheckedData:
    """A data primitive whose examples are checked.

    Args:
        data: what the primitive makes.
        primitive: the primitive.
        end_task: the kind of the end task, whose labels data with the trait ``labels:end-task``
            has; None if nobody reads its labels.
    """

    def __init__(
        self, data: Data, primitive: Primitive, end_task: TaskTypeName | None = None
    ) -> None:
        self._data = data
        self.primitive = primitive
        self._kind: TaskTypeName | None = None
        if "labels:own" in primitive.provides:
            self._kind = "single-label"
        elif "labels:end-task" in primitive.provides:
            self._kind = end_task

    def examples(self, context: DataContext) -> Iterator[Example]:
        """See :meth:`aang_core.objectives.stages.Data.examples`."""
        with self.primitive.blamed("reading its examples"):
            examples = iter(self._data.examples(context))
        for place in itertools.count():
            with self.primitive.blamed("reading its examples"):
                example = next(examples, _END)
            if example is _END:
                return
            yield self.checked(example, f"example {place}")

    @property
    def buffer(self) -> int | None:
        """See :class:`~aang_core.objectives.stages.StreamingData`; None if it is not read so."""
        with self.primitive.blamed("asking for its buffer"):
            # isinstance evaluates the property, which may raise.
            buffer: Any = self._data.buffer if isinstance(self._data, StreamingData) else None
        if buffer is not None and (not isinstance(buffer, int) or buffer < 1):
            raise broken(self.primitive, "the buffer", "a number above 0", described(buffer))
        return buffer

    @property
    def of_step(self) -> bool:
        """See :class:`~aang_core.objectives.stages.StepData`; False if it has rows of its own."""
        with self.primitive.blamed("asking whether its rows are those of the step"):
            return isinstance(self._data, StepData) and bool(self._data.of_step)

    @property
    def of_end_task(self) -> bool:
        """See :class:`~aang_core.objectives.stages.EndTaskData`; False if it has other texts."""
        with self.primitive.blamed("asking whether its texts are the end task's"):
            return isinstance(self._data, EndTaskData) and bool(self._data.of_end_task)

    def stream(self, context: DataContext) -> TextStream:
        """See :meth:`aang_core.objectives.stages.StreamingData.stream`."""
        assert isinstance(self._data, StreamingData)
        with self.primitive.blamed("opening its stream"):
            return _CheckedStream(self._data.stream(context), self)

    def checked(self, example: Any, what: str) -> Example:
        """Return ``example`` if it is an Example.

        Raises:
            PluginError: it is not, or a part of it has the wrong type.
        """
        if not isinstance(example, Example):
            raise broken(self.primitive, what, "an Example", described(example))
        if not isinstance(example.text, str):
            raise broken(self.primitive, f"the text of {what}", "a string", described(example.text))
        pair, label = example.text_pair, example.label
        if not isinstance(pair, str | None):
            raise broken(
                self.primitive, f"the text_pair of {what}", "a string or None", described(pair)
            )
        if expected := expected_of(label, self._kind):
            raise broken(self.primitive, f"the label of {what}", expected, described(label))
        return replace(example, label=float(label)) if isinstance(label, int) else example


class _CheckedStream:
    """A stream whose examples are checked."""

    def __init__(self, stream: TextStream, data: CheckedData) -> None:
        self._stream = stream
        self._data = data

    def __next__(self) -> Example:
        with self._data.primitive.blamed("reading its stream"):
            example: Any = next(self._stream)
        return self._data.checked(example, "an example of its stream")

    def state_dict(self) -> dict[str, Any]:
        with self._data.primitive.blamed("asking for the state of its stream"):
            return self._stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with self._data.primitive.blamed("restoring the state of its stream"):
            self._stream.load_state_dict(state)
