"""Batches made before they are asked for, while the device computes the step before."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")


@dataclass(frozen=True)
class Request:
    """What is to be made, apart from the generator's state.

    Attributes:
        what: names and numbers.
        objects: tasks and batches.
        indices: int64 ``[B]``, rows of a task; None if none are named.
    """

    what: tuple[object, ...]
    objects: Sequence[object] = ()
    indices: Tensor | None = None

    def same_as(self, other: "Request") -> bool:
        """Whether ``other`` asks for the same of the same objects."""
        if self.what != other.what or len(self.objects) != len(other.objects):
            return False
        if any(one is not two for one, two in zip(self.objects, other.objects, strict=True)):
            return False
        if self.indices is None or other.indices is None:
            return self.indices is other.indices
        return torch.equal(self.indices, other.indices)


@dataclass(frozen=True)
class _Answer:
    """What a request has returned, and the generator's state before and after."""

    request: Request
    before: Tensor
    made: Any
    after: Tensor


class Prepared:
    """Answers to requests that are expected, in their order.

    An answer is used only if the same request comes next and the generator is in the state from
    which it was made. Otherwise it and all later ones are dropped, and what is asked for is made as
    if nothing had been prepared. So whatever is expected, all results are the same.

    Args:
        generator: source of what is drawn for the answers.
        enabled: whether anything is prepared; useful where an accelerator computes meanwhile.

    Attributes:
        is_ahead: whether what is asked for now is kept for later.
        used: number of answers used.
        dropped: number of answers that were made in vain.

    Examples:
        >>> import torch
        >>> from aang_core.training.prepared import Prepared, Request
        >>> generator = torch.Generator().manual_seed(0)
        >>> prepared = Prepared(generator, enabled=True)
        >>> def three(name: str) -> torch.Tensor:
        ...     make = lambda: torch.randperm(3, generator=generator)
        ...     return prepared.get(Request((name,)), make)
        >>> with prepared.ahead():
        ...     early = three("a"), three("b")
        >>> three("a") is early[0], three("c") is early[1]
        (True, False)
        >>> prepared.used, prepared.dropped
        (1, 1)
    """

    def __init__(self, generator: torch.Generator, *, enabled: bool) -> None:
        self.enabled = enabled
        self.used = 0
        self.dropped = 0
        self._generator = generator
        self._answers: deque[_Answer] = deque()
        self.is_ahead = False

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """What is asked for within it is kept for later; the generator is where it was then."""
        self.forget()
        before = self._generator.get_state()
        self.is_ahead = True
        try:
            yield
        finally:
            self.is_ahead = False
            self._generator.set_state(before)

    def get(self, request: Request, make: Callable[[], Made]) -> Made:
        """What ``make`` returns, from an answer if it has been prepared."""
        if self.is_ahead:
            before = self._generator.get_state()
            made = make()
            self._answers.append(_Answer(request, before, made, self._generator.get_state()))
            return made
        if not self._answers:
            return make()
        answer = self._answers.popleft()
        if answer.request.same_as(request) and torch.equal(
            answer.before, self._generator.get_state()
        ):
            self.used += 1
            self._generator.set_state(answer.after)
            kept: Made = answer.made
            return kept
        self.dropped += 1
        self.forget()
        return make()

    def forget(self) -> None:
        """Drop the answers that are left."""
        self.dropped += len(self._answers)
        self._answers.clear()
