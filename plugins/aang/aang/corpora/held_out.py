"""Which texts are dev and test examples, so that nothing trains on them."""

from functools import cached_property

from aang.corpora.labelled_task import LabelledTask
from aang_core.objectives.stages.data import Example


class HeldOutTexts:
    """Recognises the texts of dev and test, whatever their case and spaces.

    An objective that had seen such a text would inflate the score. In tasks over pairs, both texts
    have to be the same.

    Args:
        task: the end task.

    Examples:
        >>> from aang_core import Example
        >>> from aang.corpora import LabelledTask
        >>> from aang.corpora.held_out import HeldOutTexts
        >>> train, dev = (Example("It rains.", label="bad"),), (Example("It snows.", label="good"),)
        >>> held_out = HeldOutTexts(LabelledTask("mood", train, dev, (), ("bad", "good")))
        >>> held_out.part_of(Example("it  snows.")), held_out.part_of(Example("It rains."))
        ('dev', None)
    """

    def __init__(self, task: LabelledTask) -> None:
        self._task = task

    def part_of(self, example: Example) -> str | None:
        """``dev`` or ``test``, if the text is in one of them."""
        return self._parts.get(_key(example))

    @cached_property
    def _parts(self) -> dict[tuple[str, str | None], str]:
        parts = {"dev": self._task.dev, "test": self._task.test}
        return {_key(example): part for part in parts for example in parts[part]}


def _key(example: Example) -> tuple[str, str | None]:
    pair = example.text_pair
    return _folded(example.text), None if pair is None else _folded(pair)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
