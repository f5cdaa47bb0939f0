"""Checks of what primitives return: one function for each thing that a stage returns.

A run checks every example, and the first call of each other primitive in a rehearsal on the CPU
before anything is trained; later calls are only attributed to the primitive if they raise, except
that an output's counts are checked in every call. The checks of :mod:`aang_testing` call the same
functions, many times.

A broken contract says what was expected and what was found. A run turns it into a
:class:`~aang_core.errors.PluginError` that names the primitive and its distribution.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, Protocol, get_args

import torch
from torch import Tensor, nn

from aang_core.objectives.stages import (
    CorruptedRows,
    Corruption,
    Data,
    DataContext,
    EmbeddedRows,
    Example,
    HeadBuilder,
    NoisesEmbeddings,
    Output,
    Representation,
    ShownRows,
    TextRepresentation,
    TextStream,
    Transform,
    View,
    Vocabulary,
)
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.task import RowLosses

INNOCENT = (torch.OutOfMemoryError,)
"""A lack of memory is due to the model and the batch, not to the primitive that needed more."""

_END: Any = object()


class ContractError(AssertionError):
    """A primitive returns something that the protocol of its stage does not allow."""


def expect(kept: bool, what: str, expected: Any, got: Any) -> None:
    """Do nothing if ``kept``.

    Raises:
        ContractError: ``kept`` is False; it says what was expected and found.
    """
    if not kept:
        raise ContractError(f"{what}: expected {expected}, got {got}")


def expect_base(made: object, base: type) -> None:
    """Expect that what was made for a stage is of the stage's base class."""
    what = f"a subclass of aang_core.{base.__name__}"
    expect(isinstance(made, base), "what it makes", what, type(made).__name__)


def expect_stream(data: Data) -> None:
    """Expect a method ``stream`` of data with a ``buffer``."""
    has = type(data).stream is not Data.stream
    expect(has or data.buffer is None, "stream", "a method, as there is a buffer", "none")


def expect_tensor(
    value: Any, what: str, like: tuple[int, ...], letters: str, *dtypes: torch.dtype | None
) -> None:
    """Expect a tensor.

    Args:
        value: what should be one.
        what: the name of the value in the message.
        like: its shape.
        letters: the shape as the documentation writes it, such as ``B, T``.
        *dtypes: the dtypes allowed; None allows any floating dtype.
    """
    kind = " or ".join("a floating dtype" if d is None else _name(d) for d in dtypes)
    fits = (
        isinstance(value, Tensor)
        and value.shape == like
        and (value.dtype in dtypes or (None in dtypes and value.is_floating_point()))
    )
    expect(fits, what, f"a tensor [{letters}] = {list(like)} of {kind}", described(value))


def described(value: Any) -> str:
    """Describe a value in a few words: a tensor by its shape and dtype."""
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {_name(value.dtype)}"
    text = repr(value)
    return text if len(text) < 60 and "\n" not in text else f"an object of {type(value)}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def unchanged(inputs: Mapping[str, Tensor]) -> Iterator[None]:
    """Expect that the block changes none of the input tensors in place."""
    before = {name: value.clone() for name, value in inputs.items()}
    yield
    for name, value in inputs.items():
        kept = torch.equal(before[name], value)
        expect(kept, f"its input {name}", "left as it was", "changed in place")


class LabelForm(Protocol):
    """The Python form of the labels of one kind of task.

    Attributes:
        label_form: the form in words.
    """

    @property
    def label_form(self) -> str: ...

    def holds(self, label: object) -> bool:
        """Whether ``label`` is such a label."""
        ...


@dataclass(frozen=True)
class LabelTypes:
    """Labels of some Python types.

    Attributes:
        label_form: the types in words.
        types: the types.
    """

    label_form: str
    types: type | UnionType

    def holds(self, label: object) -> bool:
        """Whether ``label`` is of one of the types."""
        return isinstance(label, self.types)


CLASS_NAME = LabelTypes("a string", str)
ANY_LABEL = LabelTypes("a string or a number or a tuple", str | int | float | tuple)


def check_example(example: Any, what: str, form: LabelForm) -> None:
    """Check that ``example`` is an Example, and its label None or of that form."""
    expect(isinstance(example, Example), what, "an Example", described(example))
    text, pair, label = example.text, example.text_pair, example.label
    expect(isinstance(text, str), f"the text of {what}", "a string", described(text))
    is_pair = isinstance(pair, str | None)
    expect(is_pair, f"the text_pair of {what}", "a string or None", described(pair))
    fits = label is None or form.holds(label)
    expect(fits, f"the label of {what}", f"{form.label_form} or None", described(label))


def check_corruption(
    returned: Any, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary
) -> Corruption:
    """Check what a transform made of ``ids`` and ``ordinary``, both ``[B, T]``."""
    several = isinstance(returned, tuple | list) and 2 <= len(returned) <= 4
    what = "a Corruption of ids and selected"
    expect(several, "what it returned", what, described(returned))
    corruption = Corruption(*returned)
    shape, letters, origin = tuple(ids.shape), "B, T", corruption.origin
    if isinstance(origin, Tensor) and origin.dim() == 2 and origin.shape[1]:
        shape, letters = (len(ids), origin.shape[1]), "B, T'"
    expect_tensor(corruption.ids, "ids", shape, letters, torch.int64)
    expect_tensor(corruption.selected, "selected", shape, letters, torch.bool)
    low, high = int(corruption.ids.min()), int(corruption.ids.max())
    known = f"token ids from 0 to {vocabulary.size - 1}"
    expect(low >= 0 and high < vocabulary.size, "ids", known, low if low < 0 else high)
    inserted = ""
    if origin is not None:
        expect_tensor(origin, "origin", shape, letters, torch.int64)
        low, high = int(origin.min()), int(origin.max())
        places = f"places from 0 to {ids.shape[1] - 1}, or -1 for an inserted token"
        expect(low >= -1 and high < ids.shape[1], "origin", places, low if low < -1 else high)
        ordinary = ordinary.gather(1, origin.clamp(min=0)) & (origin >= 0)
        inserted = ", or an inserted token"
    others = bool((corruption.selected & ~ordinary).any())
    got = f"a special token or padding{inserted}"
    expect(not others, "selected", "ordinary tokens alone", got)
    if corruption.real is not None:
        expect_tensor(corruption.real, "real", shape, letters, torch.bool)
        gone = bool((corruption.selected & ~corruption.real).any())
        expect(not gone, "selected", "tokens that are left", "one that real says is gone")
    return corruption


def check_noise(noise: Any, embeddings: Tensor) -> None:
    """Check the noise on embeddings ``[B, T, E]``."""
    expect_tensor(noise, "noise", tuple(embeddings.shape), "B, T, E", embeddings.dtype)
    place = f"{noise.device}"
    expect(noise.device == embeddings.device, "noise", f"on {embeddings.device}", f"on {place}")
    expect(not noise.requires_grad, "noise", "no gradient", "one")
    expect(bool(noise.isfinite().all()), "noise", "finite numbers", "others")


def check_sees(sees: Any, real: Tensor) -> None:
    """Check who sees whom, given which tokens are real, ``[B, T]``."""
    rows, tokens = real.shape
    expect_tensor(sees, "who sees whom", (rows, tokens, tokens), "B, T, T", torch.bool)
    padding = bool((sees & ~real.unsqueeze(1)).any())
    expect(not padding, "padding", "seen by nobody", "seen by a token")
    blind = bool((real & ~sees.any(dim=2)).any())
    expect(not blind, "a real token", "one that sees a token", "it sees none")


def check_targets(targets: Any) -> None:
    """Check what an output makes of corrupted rows."""
    expect(isinstance(targets, Mapping), "its targets", "a mapping of tensors", described(targets))
    for name, value in targets.items():
        expect(isinstance(value, Tensor), f"its target {name!r}", "a tensor", described(value))


_COUNTS = (torch.int64, torch.int32, torch.float32, torch.float64)
"""Types of counts of targets."""


def check_losses(returned: Any, hidden: Tensor) -> RowLosses:
    """Check the losses that an output computes from hidden states ``[B, T, H]``."""
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    what = "RowLosses of sums and counts, one of each per row"
    expect(pair, "its loss", what, described(returned))
    sums, counts = returned
    expect_tensor(sums, "sums of losses", hidden.shape[:1], "B", None)
    expect_tensor(counts, "counts of targets", hidden.shape[:1], "B", *_COUNTS)
    expect(
        sums.requires_grad or not (torch.is_grad_enabled() and hidden.requires_grad),
        "sums of losses",
        "a gradient by the hidden states, of rows without a target too",
        "none; is the loss detached or computed outside of torch?",
    )
    found = [round(value, 4) for value in sums.detach().float().tolist()]
    finite = "finite numbers, zero for a row without a target"
    expect(bool(sums.isfinite().all()), "sums of losses", finite, found)
    expect(bool((counts >= 0).all()), "counts of targets", "none negative", counts.tolist())
    expect(not bool(sums[counts == 0].any()), "sums of losses", finite, found)
    return RowLosses(sums, counts)


def check_hits(hits: Any, counts: Tensor) -> None:
    """Check the numbers of correct predictions, given those of targets, ``[B]``."""
    expect_tensor(hits, "counts of hits", tuple(counts.shape), "B", torch.int64)
    between = bool(((hits >= 0) & (hits <= counts)).all())
    expect(between, "counts of hits", f"0 to the targets {counts.tolist()}", hits.tolist())


@contextmanager
def of_primitive(primitive: Primitive, doing: str) -> Iterator[None]:
    """Attribute what goes wrong in the block to a primitive.

    Raises:
        PluginError: the block raised something, or broke the contract.
    """
    try:
        with primitive.blamed(doing, (*INNOCENT, ContractError)):
            yield
    except ContractError as error:
        raise primitive.fault(str(error)) from error


class CheckedData(Data):
    """A data primitive whose examples are checked as they are read.

    Args:
        data: what the primitive makes.
        primitive: the primitive.
        end_task: the form of the labels of the end task, which data with the trait
            ``labels:end-task`` has; None if its labels are not read.
    """

    def __init__(self, data: Data, primitive: Primitive, end_task: LabelForm | None = None) -> None:
        with of_primitive(primitive, "its buffer"):
            expect_base(data, Data)
            fits = data.buffer is None or (isinstance(data.buffer, int) and data.buffer > 0)
            expect(fits, "the buffer", "a number above 0", data.buffer)
            expect_stream(data)
        self.buffer = data.buffer
        self.of_step = data.of_step
        self.of_end_task = data.of_end_task
        self._data = data
        self.primitive = primitive
        self._form: LabelForm = ANY_LABEL
        if "labels:own" in primitive.provides:
            self._form = CLASS_NAME
        elif "labels:end-task" in primitive.provides and end_task is not None:
            self._form = end_task

    def examples(self, context: DataContext) -> Iterator[Example]:
        """See :meth:`aang_core.objectives.stages.Data.examples`."""
        with of_primitive(self.primitive, "reading its examples"):
            examples = iter(self._data.examples(context))
        for place in itertools.count():
            with of_primitive(self.primitive, "reading its examples"):
                example = next(examples, _END)
            if example is _END:
                return
            yield self.checked(example, f"example {place}")

    def stream(self, context: DataContext) -> TextStream:
        """See :meth:`aang_core.objectives.stages.Data.stream`."""
        with of_primitive(self.primitive, "opening its stream"):
            return _CheckedStream(self._data.stream(context), self)

    def checked(self, example: Any, what: str) -> Example:
        """Return ``example``, checked; a label that is a whole number becomes a float.

        Raises:
            PluginError: it is not an Example, or a part of it has the wrong type.
        """
        with of_primitive(self.primitive, "reading its examples"):
            check_example(example, what, self._form)
        found: Example = example
        label = found.label
        return replace(found, label=float(label)) if isinstance(label, int) else found


class _CheckedStream:
    """A stream whose examples are checked."""

    def __init__(self, stream: TextStream, data: CheckedData) -> None:
        self._stream = stream
        self._data = data

    def __next__(self) -> Example:
        with of_primitive(self._data.primitive, "reading its stream"):
            example: Any = next(self._stream)
        return self._data.checked(example, "an example of its stream")

    def state_dict(self) -> dict[str, Any]:
        with of_primitive(self._data.primitive, "asking for the state of its stream"):
            return self._stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with of_primitive(self._data.primitive, "restoring the state of its stream"):
            self._stream.load_state_dict(state)


class CheckedTransform:
    """A transform whose first call is checked, and its first noise if it adds some."""

    def __init__(self, transform: Transform, primitive: Primitive) -> None:
        self._transform = transform
        self._primitive = primitive
        self._tried = self._tried_noise = False

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """See :class:`aang_core.objectives.stages.Transform`."""
        inputs = {} if self._tried else {"ids": ids, "ordinary": ordinary}
        with of_primitive(self._primitive, "its call"):
            with unchanged(inputs):
                corruption: Any = self._transform(ids, ordinary, vocabulary, generator)
            if not self._tried:
                check_corruption(corruption, ids, ordinary, vocabulary)
        self._tried = True
        return Corruption(*corruption)

    @property
    def noises(self) -> bool:
        """Whether :meth:`noise` can be called."""
        return isinstance(self._transform, NoisesEmbeddings)

    def noise(self, rows: EmbeddedRows, generator: torch.Generator) -> Tensor:
        """See :class:`aang_core.objectives.stages.NoisesEmbeddings`."""
        assert isinstance(self._transform, NoisesEmbeddings)
        inputs = {} if self._tried_noise else {"embeddings": rows.embeddings, "noisy": rows.noisy}
        with of_primitive(self._primitive, "making its noise"):
            with unchanged(inputs):
                noise = self._transform.noise(rows, generator)
            if not self._tried_noise:
                check_noise(noise, rows.embeddings)
        self._tried_noise = True
        return noise


class CheckedRepresentation:
    """A representation of either kind, whose first call is checked."""

    def __init__(
        self, representation: Representation | TextRepresentation, primitive: Primitive
    ) -> None:
        self._representation = representation
        self._primitive = primitive
        self._tried = False

    def __call__(self, shown: ShownRows, generator: torch.Generator) -> Tensor:
        """Who sees whom in ``shown``, ``[B, T, T]`` bool.

        See :class:`aang_core.objectives.stages.Representation` and
        :class:`aang_core.objectives.stages.TextRepresentation`.
        """
        inputs = {} if self._tried else {"real": shown.real, "ids": shown.ids}
        with of_primitive(self._primitive, "its call"):
            with unchanged(inputs):
                sees = who_sees_whom(self._representation, shown, generator)
            if not self._tried:
                check_sees(sees, shown.real)
        self._tried = True
        return sees


def who_sees_whom(
    representation: Representation | TextRepresentation,
    shown: ShownRows,
    generator: torch.Generator,
) -> Tensor:
    """Call a representation of either kind."""
    if isinstance(representation, TextRepresentation):
        return representation.of_text(shown, generator)
    return representation(shown.real, generator)


class CheckedOutput(Output):
    """An output whose views, head, and first targets and losses, are checked."""

    def __init__(self, output: Output, primitive: Primitive) -> None:
        with of_primitive(primitive, "its views"):
            expect_base(output, Output)
            views: Any = output.views
            fits = isinstance(views, tuple | list) and views and {*views} <= {*get_args(View)}
            kinds = " or ".join(map(repr, get_args(View)))
            expect(bool(fits), "views", f"a tuple of {kinds}", described(views))
        self.views = tuple(views)
        self.couples_rows = output.couples_rows
        self._output = output
        self._primitive = primitive
        self._tried = False

    def head(self, heads: HeadBuilder) -> nn.Module:
        """See :meth:`aang_core.objectives.stages.Output.head`."""
        with of_primitive(self._primitive, "making its head"):
            head = self._output.head(heads)
            expect(isinstance(head, nn.Module), "its head", "a torch module", described(head))
        return head

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """See :meth:`aang_core.objectives.stages.Output.targets`."""
        with of_primitive(self._primitive, "making its targets"):
            targets = self._output.targets(rows)
            if not self._tried:
                check_targets(targets)
        return targets

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """See :meth:`aang_core.objectives.stages.Output.losses`."""
        with of_primitive(self._primitive, "its loss"):
            losses: Any = self._output.losses(head, hidden, targets)
            if not self._tried:
                check_losses(losses, hidden)
            # At every call: counts depend on the precision, and bfloat16 cannot hold 257.
            expect_tensor(losses[1], "counts of targets", hidden.shape[:1], "B", *_COUNTS)
        self._tried = True
        return RowLosses(*losses)

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor | None:
        """See :meth:`aang_core.objectives.stages.Output.hits`."""
        with of_primitive(self._primitive, "counting its hits"):
            return self._output.hits(head, hidden, targets)
