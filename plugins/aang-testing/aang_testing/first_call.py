"""The first call of a primitive, checked as training checks it, and what went wrong in words."""

import inspect
from collections.abc import Callable

import hypothesis
import torch

from aang_core.checked.weighter import CheckedWeighter
from aang_core.contracts import CheckedData, CheckedOutput, CheckedRepresentation, CheckedTransform
from aang_core.errors import AangError
from aang_core.objectives.stages import ShownRows
from aang_core.plugins.faults import place_of, text_of
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.traits import PREFIX
from aang_core.tasks.weighting import TaskCard
from aang_testing.data import sample_context
from aang_testing.expectation import PROPERTY
from aang_testing.heads import HIDDEN_SIZE, SmallHeads
from aang_testing.rows import SINGLE, SampleRows, corrupted_rows
from aang_testing.workbench import RecordingWorkbench


def call_once(primitive: Primitive) -> None:
    """Call a primitive once, as a run does before it trains.

    Raises:
        AangError: it breaks the contract of its stage; the message is the one at run time.
    """
    calls: dict[str, Callable[[Primitive], None]] = {
        "data": _data,
        "transform": _transform,
        "representation": _representation,
        "output": _output,
        "weighter": _weighter,
    }
    calls[primitive.stage](primitive)


def kind_of(output: Primitive) -> str:
    """The kind of end task that an output requires; one class a text if it takes any."""
    kinds = (t.removeprefix(PREFIX) for t in sorted(output.requires) if t.startswith(PREFIX))
    return next(kinds, SINGLE)


def in_words(primitive: Primitive, error: BaseException) -> str:
    """What went wrong in a check of a primitive: one failure, with file and line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message = text_of(error).split(" Falsifying example:")[0]
    if isinstance(error, AangError):
        # The author reads this, and needs neither the name of the plug-in nor how to disable it.
        before, after = str(primitive.fault("\0")).split("\0")
        message = message.removeprefix(before).removesuffix(after)
    elif not isinstance(error, AssertionError):
        message = f"{type(error).__name__}: {message}"
    cause = error.__cause__ or error
    place = place_of(error) or place_of(cause) or _defined_at(primitive)
    return message if not place or place in message else f"{message} ({place})"


def _defined_at(primitive: Primitive) -> str:
    """``FILE:LINE`` of the target; empty if it has none."""
    try:
        target = inspect.unwrap(primitive.load())
        _, line = inspect.getsourcelines(target)
        return f"{inspect.getsourcefile(target)}:{line}"
    except (AangError, OSError, TypeError):
        return ""


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _rows() -> SampleRows:
    return SampleRows.of_lengths([9, 30, 32], 32, seed=0)


def _data(primitive: Primitive) -> None:
    with sample_context() as context:
        for _ in CheckedData(primitive.make(), primitive).examples(context):
            pass


def _transform(primitive: Primitive) -> None:
    rows = _rows()
    transform = CheckedTransform(primitive.make(), primitive)
    transform(rows.ids, rows.ordinary, rows.vocabulary, _generator())


def _representation(primitive: Primitive) -> None:
    rows = _rows()
    shown = ShownRows(rows.ids, rows.real, rows.ordinary, rows.vocabulary)
    CheckedRepresentation(primitive.make(), primitive)(shown, _generator())


def _output(primitive: Primitive) -> None:
    output, kind = CheckedOutput(primitive.make(), primitive), kind_of(primitive)
    rows = hypothesis.find(
        corrupted_rows(labelled=True, views=len(output.views), kind=kind),
        lambda rows: bool(rows.selected.any()),
        settings=PROPERTY,
    )
    head = output.head(SmallHeads(kind))
    shape = (*rows.original.shape, HIDDEN_SIZE)
    hidden = torch.randn(shape, generator=_generator()).requires_grad_()
    targets = output.targets(rows)
    output.losses(head, hidden, targets)
    # In half precision losses are, and counts must not be, of another dtype.
    with torch.autocast("cpu", torch.bfloat16):
        output.losses(head, hidden.bfloat16(), targets)


def _weighter(primitive: Primitive) -> None:
    others = [TaskCard(name, {"transform": name}) for name in ("first", "second")]
    weighter = CheckedWeighter.make(primitive, TaskCard("end"), others, {})
    weighter.round(RecordingWorkbench("end", [card.name for card in others]))
    weighter.weights()
    weighter.record()
    weighter.load_state_dict(weighter.state_dict())
