"""The contract of data primitives."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aang.assembly.plan import READ_BY

from aang_core.contracts import (
    ANY_LABEL,
    CLASS_NAME,
    check_example,
    expect,
    expect_base,
    expect_stream,
)
from aang_core.errors import DataError
from aang_core.objectives.stages import Data, DataContext, Example, Label
from aang_testing.expectation import only_generator_draws
from aang_testing.streams import read_stream

_WORDS = ("alpha", "beta", "gamma", "delta")


def check_data(data: Data, provides: Iterable[str] = ()) -> None:
    """Check ``data`` on a small task with unlabelled, in-domain and generic text.

    If its ``buffer`` is not None, its stream is checked, too.

    Args:
        data: the primitive.
        provides: traits to check. ``text``: every example has a text. ``labels:end-task`` and
            ``labels:own``: every example has a label, which for the former is one of the task's.
            ``reads:domain``, ``reads:out-of-domain``, ``reads:unlabelled``: it reads the text of
            that option, and must declare it if it does. Data with the attribute ``of_end_task`` or
            ``of_step`` has the end task's training examples.

    Raises:
        AssertionError: a check failed; it says what was expected and found.
    """
    expect_base(data, Data)
    expect_stream(data)
    traits = frozenset(provides)
    with sample_context() as context:
        with only_generator_draws("examples"):
            first = _examples(data, context)
        again = _examples(data, context)
        expect(bool(first), "examples of a small task", "some", "none")
        streamed: list[Example] = []
        if data.buffer is not None:
            streamed = read_stream(data, context, len(first))
    known = {example.label for example in context.train}
    for i, example in enumerate(first):
        _check_example(example, f"example {i}", traits, known)
    for i, example in enumerate(streamed):
        _check_example(example, f"text {i} of the stream", traits, known)
    if data.of_end_task or data.of_step:
        expect(
            first == list(context.train),
            "examples of data that says it is the end task's own",
            "its training examples",
            "others",
        )
    for name, trait in READ_BY.items():
        expect(
            (trait in traits) == (name in context.read),
            f"the trait {trait} of data that "
            f"{'reads' if name in context.read else 'does not read'} context.{name}",
            "declared" if name in context.read else "not declared",
            "declared" if trait in traits else "not declared",
        )
    expect(first == again, "examples read a second time", "the same, in the same order", "others")
    expect(
        tuple(context.train) == _train(),
        "the task's training examples",
        "left as they are",
        "changed",
    )


def _check_example(
    example: Example, where: str, traits: frozenset[str], known: set[Label | None]
) -> None:
    check_example(example, where, CLASS_NAME if "labels:own" in traits else ANY_LABEL)
    if "text" in traits:
        expect(bool(example.text.strip()), f"text of {where}", "not blank", example.text)
    if traits & {"labels:end-task", "labels:own"}:
        expect(example.label is not None, f"label of {where}", "one", "none")
    if "labels:end-task" in traits:
        expect(example.label in known, f"label of {where}", sorted(map(str, known)), example.label)


def _examples(data: Data, context: DataContext) -> list[Example]:
    try:
        return list(data.examples(context))
    except DataError as error:
        raise AssertionError(
            f"examples of a small task with --domain, --out-of-domain and --unlabelled: expected "
            f"some, got the error: {error}"
        ) from error


def _train() -> tuple[Example, ...]:
    return tuple(
        Example(f"{word} is the word of text number {i} of the task", label=word)
        for i in range(6)
        for word in _WORDS[:2]
    )


class WatchedContext(DataContext):
    """A context that knows which of its texts have been asked for."""

    @property
    def read(self) -> set[str]:
        """The names of the options whose text has been asked for."""
        asked: set[str] = vars(self).setdefault("_read", set())
        return asked

    def __getattribute__(self, name: str) -> Any:
        if name in READ_BY:
            self.read.add(name)
        return super().__getattribute__(name)


@contextmanager
def sample_context() -> Iterator[WatchedContext]:
    """A small task with files of unlabelled, in-domain and generic text, which then disappear."""
    with tempfile.TemporaryDirectory() as folder:
        yield _context(Path(folder))


def _context(folder: Path) -> WatchedContext:
    lines = [
        f"{word} is in line number {i} of a file of texts" for i in range(5) for word in _WORDS
    ]
    for name in ("domain.txt", "generic.txt"):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return WatchedContext(
        train=_train(),
        domain=[folder / "domain.txt"],
        out_of_domain=[folder / "generic.txt"],
        unlabelled=tuple(Example(f"text number {i} has no label") for i in range(20)),
    )
