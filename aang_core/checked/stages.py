"""The seams of the four stages: what a primitive hands over is checked where the core takes it.

Every call is checked by what a tensor says of itself, its type, shape, dtype and device, so that no
accelerator is ever waited for. The first call of each primitive of an objective is checked to the
last value besides; :func:`~aang_core.assembly.rehearsal.rehearse` makes that call on two rows, on
the CPU, before anything is trained. Losses that stop being finite later are remembered on the
device and read where training stands still anyway.

What breaks the contract is a :class:`~aang_core.errors.PluginError` that names the primitive and
its distribution, and says what was expected and got.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import torch
from torch import Tensor, nn

from aang_core.objectives.stages import (
    CorruptedRows,
    Corruption,
    CountsHits,
    Data,
    DataContext,
    Example,
    HeadBuilder,
    Output,
    Representation,
    StepData,
    StreamingData,
    TextStream,
    Transform,
    View,
    Vocabulary,
)
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.task import RowLosses

# A lack of memory is the fault of the model and the batch, not of who happened to ask for more.
_INNOCENT = (torch.OutOfMemoryError,)

_END: Any = object()


class CheckedData:
    """A data primitive whose examples are examples."""

    def __init__(self, data: Data, primitive: Primitive) -> None:
        self._data = data
        self.primitive = primitive

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
        """See :class:`~aang_core.objectives.stages.StreamingData`; None without."""
        with self.primitive.blamed("asking for its buffer"):
            # Looking whether it has one asks for it.
            buffer: Any = self._data.buffer if isinstance(self._data, StreamingData) else None
        if buffer is not None and (not isinstance(buffer, int) or buffer < 1):
            raise _broken(self.primitive, "the buffer", "a number above 0", _described(buffer))
        return buffer

    @property
    def of_step(self) -> bool:
        """See :class:`~aang_core.objectives.stages.StepData`; False if it has rows of its own."""
        with self.primitive.blamed("asking whether its rows are those of the step"):
            return isinstance(self._data, StepData) and bool(self._data.of_step)

    def stream(self, context: DataContext) -> TextStream:
        """See :meth:`aang_core.objectives.stages.StreamingData.stream`."""
        assert isinstance(self._data, StreamingData)
        with self.primitive.blamed("opening its stream"):
            return _CheckedStream(self._data.stream(context), self)

    def checked(self, example: Any, what: str) -> Example:
        """``example``, if it is one."""
        if not isinstance(example, Example):
            raise _broken(self.primitive, what, "an Example", _described(example))
        if not isinstance(example.text, str):
            raise _broken(
                self.primitive, f"the text of {what}", "a string", _described(example.text)
            )
        for name in ("text_pair", "label"):
            value = getattr(example, name)
            if not isinstance(value, str | None):
                raise _broken(
                    self.primitive, f"the {name} of {what}", "a string or None", _described(value)
                )
        return example


class _CheckedStream:
    """A stream whose examples are examples."""

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


class CheckedTransform:
    """A transform that returns token ids and targets of the shape of its input."""

    def __init__(self, transform: Transform, primitive: Primitive) -> None:
        self._transform = transform
        self._primitive = primitive
        self._tried = False

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """See :class:`aang_core.objectives.stages.Transform`."""
        before = None if self._tried else (ids.clone(), ordinary.clone())
        with self._primitive.blamed("its call", _INNOCENT):
            returned: Any = self._transform(ids, ordinary, vocabulary, generator)
        corruption = self._pair(returned)
        _expect(self._primitive, "ids", corruption.ids, ids.shape, ids.device, "B, T", torch.int64)
        _expect(
            self._primitive,
            "selected",
            corruption.selected,
            ids.shape,
            ids.device,
            "B, T",
            torch.bool,
        )
        if before is not None:
            self._check_values(corruption, vocabulary, (ids, ordinary), before)
            self._tried = True
        return corruption

    def _pair(self, returned: Any) -> Corruption:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise _broken(
                self._primitive,
                "what it returned",
                "a Corruption of ids and selected",
                _described(returned),
            )
        return Corruption(*returned)

    def _check_values(
        self,
        corruption: Corruption,
        vocabulary: Vocabulary,
        inputs: tuple[Tensor, Tensor],
        before: tuple[Tensor, Tensor],
    ) -> None:
        ids, selected = corruption
        for name, now, then in zip(("ids", "ordinary"), inputs, before, strict=True):
            if not torch.equal(now, then):
                raise _broken(
                    self._primitive, f"its input {name}", "left as it was", "changed in place"
                )
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= vocabulary.size:
            raise _broken(
                self._primitive,
                "ids",
                f"token ids from 0 to {vocabulary.size - 1}",
                f"{low if low < 0 else high}",
            )
        if bool((selected & ~before[1]).any()):
            raise _broken(
                self._primitive, "selected", "ordinary tokens alone", "a special token or padding"
            )


class CheckedRepresentation:
    """A representation that returns a mask over pairs of tokens."""

    def __init__(self, representation: Representation, primitive: Primitive) -> None:
        self._representation = representation
        self._primitive = primitive
        self._tried = False

    def __call__(self, real: Tensor, generator: torch.Generator) -> Tensor:
        """See :class:`aang_core.objectives.stages.Representation`."""
        before = None if self._tried else real.clone()
        with self._primitive.blamed("its call", _INNOCENT):
            sees = self._representation(real, generator)
        rows, tokens = real.shape
        _expect(
            self._primitive,
            "who sees whom",
            sees,
            (rows, tokens, tokens),
            real.device,
            "B, T, T",
            torch.bool,
        )
        if before is not None:
            self._check_values(sees, real, before)
            self._tried = True
        return sees

    def _check_values(self, sees: Tensor, real: Tensor, before: Tensor) -> None:
        if not torch.equal(real, before):
            raise _broken(self._primitive, "its input real", "left as it was", "changed in place")
        if bool((sees & ~real.unsqueeze(1)).any()):
            raise _broken(self._primitive, "padding", "seen by nobody", "seen by a token")
        if bool((real & ~sees.any(dim=2)).any()):
            raise _broken(self._primitive, "a real token", "one that sees a token", "it sees none")


class CheckedOutput:
    """An output whose head is a module, whose targets are tensors and whose losses are per row.

    Losses are looked at in the first call. That they stay finite the workbench sees to, at every
    step.
    """

    def __init__(self, output: Output, primitive: Primitive) -> None:
        self._output = output
        self._primitive = primitive
        self._tried = False

    @property
    def views(self) -> tuple[View, ...]:
        """How each row is shown; see :class:`aang_core.objectives.stages.Output`."""
        with self._primitive.blamed("asking for its views"):
            views: Any = getattr(self._output, "views", ("corrupted",))
        if isinstance(views, tuple | list) and views and set(views) <= set(get_args(View)):
            return tuple(views)
        kinds = " or ".join(map(repr, get_args(View)))
        raise _broken(self._primitive, "views", f"a tuple of {kinds}", _described(views))

    @property
    def couples_rows(self) -> bool:
        """Whether rows are coupled; see :class:`~aang_core.objectives.stages.Output`."""
        with self._primitive.blamed("asking whether it couples rows"):
            couples: Any = getattr(self._output, "couples_rows", False)
        if not isinstance(couples, bool):
            raise _broken(self._primitive, "couples_rows", "True or False", _described(couples))
        return couples

    def head(self, heads: HeadBuilder) -> nn.Module:
        """See :meth:`aang_core.objectives.stages.Output.head`."""
        with self._primitive.blamed("making its head", _INNOCENT):
            head: Any = self._output.head(heads)
        if not isinstance(head, nn.Module):
            raise _broken(self._primitive, "its head", "a torch module", _described(head))
        return head

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """See :meth:`aang_core.objectives.stages.Output.targets`."""
        with self._primitive.blamed("making its targets", _INNOCENT):
            targets: Any = self._output.targets(rows)
        if not isinstance(targets, Mapping):
            raise _broken(
                self._primitive, "its targets", "a mapping of tensors", _described(targets)
            )
        for name, value in targets.items():
            if not isinstance(value, Tensor):
                raise _broken(
                    self._primitive, f"its target {name!r}", "a tensor", _described(value)
                )
        return targets

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """See :meth:`aang_core.objectives.stages.Output.losses`."""
        with self._primitive.blamed("its loss", _INNOCENT):
            returned: Any = self._output.losses(head, hidden, targets)
        losses = self._pair(returned)
        rows = hidden.shape[:1]
        _expect(self._primitive, "sums of losses", losses.sums, rows, hidden.device, "B", None)
        _expect(
            self._primitive,
            "counts of targets",
            losses.counts,
            rows,
            hidden.device,
            "B",
            *(torch.int64, torch.int32, torch.float32, torch.float64),
        )
        if torch.is_grad_enabled() and hidden.requires_grad and not losses.sums.requires_grad:
            raise _broken(
                self._primitive,
                "sums of losses",
                "a gradient by the hidden states, of rows without a target too",
                "none; is the loss detached or computed outside of torch?",
            )
        if not self._tried:
            self._check_values(losses)
            self._tried = True
        return losses

    @property
    def counts_hits(self) -> bool:
        """Whether there is :meth:`hits`."""
        return isinstance(self._output, CountsHits)

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """See :meth:`aang_core.objectives.stages.CountsHits.hits`."""
        assert isinstance(self._output, CountsHits)
        with self._primitive.blamed("counting its hits", _INNOCENT):
            hits: Tensor = self._output.hits(head, hidden, targets)
        rows = hidden.shape[:1]
        _expect(self._primitive, "counts of hits", hits, rows, hidden.device, "B", torch.int64)
        return hits

    def _pair(self, returned: Any) -> RowLosses:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise _broken(
                self._primitive,
                "its loss",
                "RowLosses of sums and counts, one of each per row",
                _described(returned),
            )
        return RowLosses(*returned)

    def _check_values(self, losses: RowLosses) -> None:
        sums = losses.sums.detach()
        if not bool(sums.isfinite().all()):
            raise _broken(
                self._primitive,
                "sums of losses",
                "finite numbers, zero for a row without a target",
                str([round(value, 4) for value in sums.float().tolist()]),
            )
        if bool((losses.counts < 0).any()):
            raise _broken(
                self._primitive, "counts of targets", "none negative", str(losses.counts.tolist())
            )


def _expect(
    primitive: Primitive,
    what: str,
    value: Any,
    shape: tuple[int, ...],
    device: torch.device,
    letters: str,
    *dtypes: torch.dtype | None,
) -> None:
    """Expect a tensor of this shape, on this device and of one of these dtypes.

    letters: the shape as the documentation writes it. A dtype of None stands for any real number.
    """
    if (
        isinstance(value, Tensor)
        and value.shape == shape
        and value.device == device
        and (value.dtype in dtypes or (None in dtypes and value.is_floating_point()))
    ):
        return
    kind = " or ".join("a floating dtype" if d is None else _name(d) for d in dtypes)
    place = "" if device.type == "cpu" else f" on {device}"
    expected = f"a tensor [{letters}] = {list(shape)} of {kind}{place}"
    raise _broken(primitive, what, expected, _described(value))


def _broken(primitive: Primitive, what: str, expected: str, got: str) -> Exception:
    return primitive.fault(f"{what}: expected {expected}, got {got}")


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        text = repr(value)
        return text if len(text) < 60 and "\n" not in text else f"an object of {type(value)}"
    place = "" if value.device.type == "cpu" else f" on {value.device}"
    return f"{list(value.shape)} of {_name(value.dtype)}{place}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
