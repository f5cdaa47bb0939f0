"""Features of the end task's rows of the latest steps, to fit dev heads to."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from aang_core.tasks.saved import wrong
from aang_core.tasks.task import Batch, to_device

_Part = tuple[Tensor, dict[str, Tensor]]
"""Features of a batch's rows and their targets, with the rows' numbers under `_NUMBERS`."""

_NUMBERS = "/numbers"
_PLACE = re.compile(r"([0-9]{1,9})\|([0-9]{1,9})\|(features|targets\|.+)", re.DOTALL)
"""The name of a saved tensor: the step, the batch, and what it is."""


class RowMemory:
    """The latest observed rows: their features and targets.

    Which rows are dropped depends only on their positions, not on how the rows of a step are split
    into batches: several processes split them differently than one, but remember the same.

    Args:
        rows: number of rows to keep; the oldest are dropped. A batch with a target that does not
            have one entry per row is kept whole.
        keep: selects the part of features ``[B, ...]`` to keep; by default all.
    """

    def __init__(
        self, rows: int, keep: Callable[[Tensor], Tensor] = lambda features: features
    ) -> None:
        self.rows = rows
        self._keep = keep
        self._steps: list[list[_Part]] = []

    def __len__(self) -> int:
        """Number of remembered rows."""
        return sum(len(features) for step in self._steps for features, _ in step)

    @property
    def steps(self) -> int:
        """Number of steps whose rows are remembered."""
        return len(self._steps)

    def observe(
        self, features: Sequence[Tensor], batches: Sequence[Batch], *, begins: bool = True
    ) -> None:
        """Remember the rows of a step.

        Args:
            features: the body's features ``[B, ...]`` of each batch, detached.
            batches: the rows.
            begins: False for further rows of the same step.
        """
        parts = [_part(self._keep(f), batch) for f, batch in zip(features, batches, strict=True)]
        if begins or not self._steps:
            steps = [*self._steps, parts]
        else:
            steps = [*self._steps[:-1], [*self._steps[-1], *parts]]
        self._steps = _latest(steps, self.rows)

    def latest(self, rows: int, without: Sequence[Batch] = ()) -> tuple[list[Tensor], list[Batch]]:
        """The latest rows, oldest first.

        Args:
            rows: most rows to return.
            without: rows to leave out if they are remembered from an earlier pass over the data
                and batches know their numbers; they are kept if nothing else is left.

        Returns:
            Features ``[B, ...]`` of each batch, and batches that hold the targets.
        """
        parts = [part for step in _latest(self._steps, rows) for part in step]
        numbers = [batch.numbers for batch in without if batch.numbers is not None]
        if numbers:
            parts = _without(parts, torch.cat(numbers)) or parts
        joined = _joined(parts)
        return (
            [features for features, _ in joined],
            [Batch({}, _targets(part), len(part[0])) for part in joined],
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All remembered tensors, named by step and batch; not copied."""
        return {
            name: tensor
            for i, step in enumerate(self._steps)
            for j, (features, targets) in enumerate(step)
            for name, tensor in (
                (f"{i}|{j}|features", features),
                *((f"{i}|{j}|targets|{key}", value) for key, value in targets.items()),
            )
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a saved state.

        Whether a head can read the features is not known here.

        Raises:
            SavedStateError: it is not such a state.
        """
        parts: dict[tuple[int, int], dict[str, Tensor]] = {}
        for name, tensor in state.items():
            place = _PLACE.fullmatch(name)
            if place is None or not isinstance(tensor, Tensor):
                raise wrong(name, "a tensor of features or targets", tensor)
            parts.setdefault((int(place[1]), int(place[2])), {})[place[3]] = tensor
        steps: dict[int, list[_Part]] = {}
        for (number, _), found in sorted(parts.items()):
            steps.setdefault(number, []).append(_restored(found))
        self._steps = list(steps.values())


def _restored(found: dict[str, Tensor]) -> _Part:
    """The part whose tensors have these names."""
    features = found.pop("features", None)
    if features is None or features.dim() < 1 or not features.is_floating_point():
        raise wrong("features", "numbers for each row", features)
    targets = {key.removeprefix("targets|"): tensor for key, tensor in found.items()}
    numbers = targets.get(_NUMBERS)
    if numbers is not None:
        if numbers.shape != features.shape[:1] or numbers.dtype != torch.int64:
            raise wrong(_NUMBERS, f"{len(features)} numbers of rows", numbers)
        targets[_NUMBERS] = numbers.cpu()
    return features, targets


def _part(features: Tensor, batch: Batch) -> _Part:
    targets = dict(batch.targets)
    if batch.numbers is not None:
        targets[_NUMBERS] = batch.numbers
    return features, targets


def _targets(part: _Part) -> dict[str, Tensor]:
    return {key: target for key, target in part[1].items() if key != _NUMBERS}


def _without(parts: Sequence[_Part], numbers: Tensor) -> list[_Part]:
    """Parts without the rows with these numbers; a part that cannot be cut stays whole."""
    return [left for part in parts if len((left := _left(part, numbers))[0])]


def _left(part: _Part, numbers: Tensor) -> _Part:
    features, targets = part
    if _NUMBERS not in targets or not _by_row(part):
        return part
    # On the CPU, so that the host need not wait for an accelerator.
    left = (~torch.isin(targets[_NUMBERS], numbers)).nonzero().flatten()
    if len(left) == len(features):
        return part
    # Targets may be on the CPU: those under `_NUMBERS` always are.
    return (
        features[to_device(left, features.device)],
        {key: t[to_device(left, t.device)] for key, t in targets.items()},
    )


def _latest(steps: Sequence[list[_Part]], rows: int) -> list[list[_Part]]:
    kept: list[list[_Part]] = []
    missing = rows
    for step in reversed(steps):
        of_step: list[_Part] = []
        for part in reversed(step):
            if missing > 0:
                of_step.insert(0, _cut(part, missing))
                missing -= len(of_step[0][0])
        if of_step:
            kept.insert(0, of_step)
    return kept


def _cut(part: _Part, rows: int) -> _Part:
    """The last ``rows`` rows of a part, if it has more and can be cut."""
    features, targets = part
    start = len(features) - rows
    if start <= 0 or not _by_row(part):
        return part
    return features[start:].clone(), {key: t[start:].clone() for key, t in targets.items()}


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Concatenate neighbours of equal shapes, for fewer passes through a head."""
    groups: list[list[_Part]] = []
    for part in parts:
        if groups and _by_row(part) and _by_row(groups[-1][0]) and _alike(part, groups[-1][0]):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [
        (
            torch.cat([features for features, _ in group]),
            {key: torch.cat([targets[key] for _, targets in group]) for key in group[0][1]},
        )
        for group in groups
    ]


def _by_row(part: _Part) -> bool:
    features, targets = part
    return all(t.dim() > 0 and len(t) == len(features) for t in targets.values())


def _alike(one: _Part, other: _Part) -> bool:
    return list(_shapes(one)) == list(_shapes(other))


def _shapes(part: _Part) -> Iterator[object]:
    features, targets = part
    yield features.shape[1:]
    # A checkpoint restores targets in another order.
    for key in sorted(targets):
        yield key, targets[key].shape[1:]
